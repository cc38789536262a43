//! Where in the source an instruction of a program comes from, and what was inlined around it.
//!
//! Valgrind knows this by itself. Perf asks another program for each address, which takes minutes for a worker, and not
//! every installation has that program.

use std::{cell::RefCell, collections::HashMap};

use addr2line::{
    Context,
    gimli::{self, Dwarf, EndianSlice, RunTimeEndian},
};
use object::{Object, ObjectSection, ObjectSymbol};

use super::name;
use crate::record::watched::Frame;

/// Debug information of one program.
pub struct Lines<'e> {
    context: Context<EndianSlice<'e, RunTimeEndian>>,
    /// Address and size of each symbol; `None` where two have the same name.
    symbols: HashMap<&'e str, Option<(u64, u64)>>,
    found: RefCell<HashMap<u64, Vec<Frame>>>,
}

/// Why a program tells no source lines.
#[derive(Debug, thiserror::Error)]
pub enum LinesError {
    /// It is no program.
    #[error("it is not an ELF file")]
    NotElf(#[source] object::Error),
    /// Its debug information is garbled.
    #[error("its debug information cannot be read")]
    Garbled(#[source] gimli::Error),
}

impl<'e> Lines<'e> {
    /// Reads the symbols of a program, given as its file; of lines and inlined functions each part is read when needed.
    ///
    /// # Errors
    /// [`LinesError`]. A program without debug information is no error: it tells no frame.
    pub fn new(elf: &'e [u8]) -> Result<Self, LinesError> {
        let file = object::File::parse(elf).map_err(LinesError::NotElf)?;
        let endian = if file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let section = |id: gimli::SectionId| {
            let section = file.section_by_name(id.name());
            // A compressed section is read as if it was not there.
            let data = section.and_then(|section| section.data().ok()).unwrap_or_default();
            Ok::<_, gimli::Error>(EndianSlice::new(data, endian))
        };
        let dwarf = Dwarf::load(section).map_err(LinesError::Garbled)?;
        let context = Context::from_dwarf(dwarf).map_err(LinesError::Garbled)?;
        let mut symbols: HashMap<&str, Option<(u64, u64)>> = HashMap::new();
        for symbol in file.symbols().filter(|symbol| symbol.is_definition()) {
            let Ok(name) = symbol.name() else { continue };
            let place = Some((symbol.address(), symbol.size()));
            symbols.entry(name).and_modify(|other| *other = other.filter(|_| *other == place)).or_insert(place);
        }
        Ok(Self { context, symbols, found: RefCell::default() })
    }

    /// Returns the frames at an offset into a symbol, given by its mangled name: what is inlined there, innermost first, and
    /// last the function of the symbol itself. Empty where it is not known.
    pub fn frames(&self, symbol: &str, offset: u64) -> Vec<Frame> {
        let Some(Some((address, size))) = self.symbols.get(symbol) else { return Vec::new() };
        let Some(address) = address.checked_add(offset).filter(|_| offset < (*size).max(1)) else { return Vec::new() };
        self.found.borrow_mut().entry(address).or_insert_with(|| self.look_up(address).unwrap_or_default()).clone()
    }

    fn look_up(&self, address: u64) -> Result<Vec<Frame>, gimli::Error> {
        let mut frames = self.context.find_frames(address).skip_all_loads()?;
        let mut found = Vec::new();
        while let Some(frame) = frames.next()? {
            let function = frame.function.as_ref().and_then(|function| function.raw_name().ok());
            let location = frame.location.as_ref();
            found.push(Frame {
                function: function.map(|function| name::readable(&function)),
                file: location.and_then(|location| location.file).map(name::readable),
                line: location.and_then(|location| location.line).filter(|line| *line > 0),
                object: None,
            });
        }
        Ok(found)
    }
}
