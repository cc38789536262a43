//! What an ELF file says of itself: kind, exported symbols, needed libraries, build id.
//!
//! 64-bit little-endian only, by section headers. Every access is bounds-checked: the files come from users.

/// An object that is loaded at any address: a shared library, or a position-independent executable.
pub const ET_DYN: u16 = 3;

/// `e_machine` of the architecture that this build runs on.
#[cfg(target_arch = "x86_64")]
pub const MACHINE: u16 = 62;
/// `e_machine` of the architecture that this build runs on.
#[cfg(target_arch = "aarch64")]
pub const MACHINE: u16 = 183;
/// `e_machine` of the architecture that this build runs on.
#[cfg(target_arch = "riscv64")]
pub const MACHINE: u16 = 243;

const SECTION_DYNAMIC: u32 = 6;
const SECTION_NOTE: u32 = 7;
const SECTION_DYNAMIC_SYMBOLS: u32 = 11;

const NEEDED: u64 = 1;
const RPATH: u64 = 15;
const RUNPATH: u64 = 29;
const FLAGS_1: u64 = 0x6fff_fffb;
/// In `DT_FLAGS_1`: a position-independent executable, not a library.
const FLAG_PIE: u64 = 0x0800_0000;

/// Why bytes are not a readable ELF file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ElfError {
    /// Other magic bytes.
    #[error("it is not an ELF file")]
    NotElf,
    /// 32-bit or big-endian.
    #[error("it is an ELF file of another class or byte order than 64-bit little-endian")]
    Foreign,
    /// A header points beyond the end.
    #[error("it is a truncated or damaged ELF file")]
    Truncated,
}

/// A parsed ELF file.
#[derive(Debug)]
pub struct Elf<'b> {
    bytes: &'b [u8],
    /// `e_type`.
    pub kind: u16,
    /// `e_machine`.
    pub machine: u16,
    sections: Vec<Section<'b>>,
}

#[derive(Clone, Copy, Debug)]
struct Section<'b> {
    kind: u32,
    /// Index of the section with its strings.
    link: usize,
    content: &'b [u8],
}

/// What the dynamic section asks of the loader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dynamic {
    /// Names of needed libraries, in order.
    pub needed: Vec<String>,
    /// Search paths written into the file, `$ORIGIN` not expanded.
    pub search: Vec<String>,
    /// Whether it is an executable.
    pub is_executable: bool,
}

impl<'b> Elf<'b> {
    /// Reads the headers.
    ///
    /// # Errors
    /// [`ElfError`] if the bytes are not a complete ELF file of the class and byte order that this code reads.
    pub fn parse(bytes: &'b [u8]) -> Result<Self, ElfError> {
        if bytes.get(..4) != Some(b"\x7fELF") {
            return Err(ElfError::NotElf);
        }
        if bytes.get(4..6).ok_or(ElfError::Truncated)? != [2, 1] {
            return Err(ElfError::Foreign);
        }
        let header = bytes.get(..64).ok_or(ElfError::Truncated)?;
        let (kind, machine) = (u16_at(header, 16)?, u16_at(header, 18)?);
        let (start, size) = (offset(u64_at(header, 40)?)?, usize::from(u16_at(header, 58)?));
        let count = usize::from(u16_at(header, 60)?);
        let table = |index: usize| bytes.get(start.checked_add(index.checked_mul(size)?)?..)?.get(..size);
        let mut sections = Vec::with_capacity(count);
        for index in 0..count {
            sections.push(section(bytes, table(index).ok_or(ElfError::Truncated)?)?);
        }
        Ok(Self { bytes, kind, machine, sections })
    }

    /// Returns whether a dynamic symbol of this name is defined here for others.
    ///
    /// # Errors
    /// [`ElfError::Truncated`] if the symbol table is damaged.
    pub fn exports(&self, name: &str) -> Result<bool, ElfError> {
        const SYMBOL: usize = 24;
        /// Global and weak.
        const BINDINGS: [u8; 2] = [1, 2];
        for section in self.sections.iter().filter(|section| section.kind == SECTION_DYNAMIC_SYMBOLS) {
            let strings = self.sections.get(section.link).ok_or(ElfError::Truncated)?.content;
            for symbol in section.content.chunks_exact(SYMBOL) {
                let is_defined = u16_at(symbol, 6)? != 0;
                if is_defined && BINDINGS.contains(&(symbol[4] >> 4)) && string(strings, u32_at(symbol, 0)?)? == name {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Returns what the dynamic section asks; `None` for a statically linked file.
    ///
    /// # Errors
    /// [`ElfError::Truncated`] if the section is damaged.
    pub fn dynamic(&self) -> Result<Option<Dynamic>, ElfError> {
        let Some(section) = self.sections.iter().find(|section| section.kind == SECTION_DYNAMIC) else {
            return Ok(None);
        };
        let strings = self.sections.get(section.link).ok_or(ElfError::Truncated)?.content;
        let mut dynamic = Dynamic::default();
        for entry in section.content.chunks_exact(16) {
            let (tag, value) = (u64_at(entry, 0)?, u64_at(entry, 8)?);
            let text = || string(strings, u32::try_from(value).map_err(|_| ElfError::Truncated)?);
            match tag {
                0 => break,
                NEEDED => dynamic.needed.push(text()?.to_owned()),
                RPATH | RUNPATH => dynamic.search.extend(text()?.split(':').map(str::to_owned)),
                FLAGS_1 => dynamic.is_executable = value & FLAG_PIE != 0,
                _ => {}
            }
        }
        Ok(Some(dynamic))
    }

    /// Returns the build id that the linker wrote, in hexadecimal digits.
    pub fn build_id(&self) -> Option<String> {
        const BUILD_ID: u32 = 3;
        self.sections.iter().filter(|section| section.kind == SECTION_NOTE).find_map(|section| {
            let note = section.content;
            let (name, length) =
                (offset(u32_at(note, 0).ok()?.into()).ok()?, offset(u32_at(note, 4).ok()?.into()).ok()?);
            let start = 12usize.checked_add(name.checked_next_multiple_of(4)?)?;
            let is_build_id = u32_at(note, 8).ok()? == BUILD_ID && note.get(12..16)? == b"GNU\0";
            let id = note.get(start..start.checked_add(length)?)?;
            is_build_id.then(|| id.iter().map(|byte| format!("{byte:02x}")).collect())
        })
    }

    /// Returns the number of bytes of the file.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }
}

fn section<'b>(bytes: &'b [u8], header: &[u8]) -> Result<Section<'b>, ElfError> {
    /// Occupies no bytes of the file.
    const NO_BITS: u32 = 8;
    let kind = u32_at(header, 4)?;
    let (start, size) = (offset(u64_at(header, 24)?)?, offset(u64_at(header, 32)?)?);
    let content = match kind {
        0 | NO_BITS => &[],
        _ => bytes.get(start..).and_then(|rest| rest.get(..size)).ok_or(ElfError::Truncated)?,
    };
    Ok(Section { kind, link: offset(u32_at(header, 40)?.into())?, content })
}

fn string(strings: &[u8], start: u32) -> Result<&str, ElfError> {
    let rest = strings.get(offset(start.into())?..).ok_or(ElfError::Truncated)?;
    let end = rest.iter().position(|&byte| byte == 0).ok_or(ElfError::Truncated)?;
    std::str::from_utf8(&rest[..end]).map_err(|_| ElfError::Truncated)
}

fn offset(number: u64) -> Result<usize, ElfError> {
    usize::try_from(number).map_err(|_| ElfError::Truncated)
}

fn bytes_at<const N: usize>(bytes: &[u8], start: usize) -> Result<[u8; N], ElfError> {
    let slice = bytes.get(start..start + N).ok_or(ElfError::Truncated)?;
    Ok(slice.try_into().expect("the slice has N bytes"))
}

fn u16_at(bytes: &[u8], start: usize) -> Result<u16, ElfError> {
    bytes_at(bytes, start).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], start: usize) -> Result<u32, ElfError> {
    bytes_at(bytes, start).map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], start: usize) -> Result<u64, ElfError> {
    bytes_at(bytes, start).map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_this_test_and_its_libc() {
        let bytes = std::fs::read("/proc/self/exe").unwrap();
        let elf = Elf::parse(&bytes).unwrap();
        assert_eq!(elf.machine, MACHINE);
        let dynamic = elf.dynamic().unwrap().expect("the test is linked dynamically");
        assert!(dynamic.is_executable);
        assert!(dynamic.needed.iter().any(|name| name == "libc.so.6"), "{dynamic:?}");
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let libc =
            maps.lines().find_map(|line| line.split_whitespace().last().filter(|path| path.contains("/libc.so")));
        let bytes = std::fs::read(libc.unwrap()).unwrap();
        let elf = Elf::parse(&bytes).unwrap();
        assert!(elf.exports("malloc").unwrap() && elf.exports("free").unwrap());
        assert!(!elf.exports("mallo").unwrap());
        // glibc can be run as a program, but is no position-independent executable.
        assert!(!elf.dynamic().unwrap().unwrap().is_executable);
    }

    #[test]
    fn every_cut_is_an_error() {
        let bytes = std::fs::read("/proc/self/exe").unwrap();
        for end in (0..64).chain((64..bytes.len()).step_by(bytes.len() / 50)) {
            assert!(Elf::parse(&bytes[..end]).is_err(), "cut at {end} of {}", bytes.len());
        }
    }
}
