//! Boxes in a chain: what a thread leaves behind, each in a block of its own.

/// Blocks linked from the newest to the oldest.
pub(super) struct Chain<T> {
    newest: Option<Box<Block<T>>>,
    len: u64,
}

struct Block<T> {
    next: Option<Box<Block<T>>>,
    value: T,
}

impl<T> Chain<T> {
    /// Size of a block.
    pub(super) const BLOCK_BYTES: usize = size_of::<Block<T>>();

    pub(super) const fn new() -> Self {
        Self { newest: None, len: 0 }
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Allocates a block.
    pub(super) fn push(&mut self, value: T) {
        self.newest = Some(Box::new(Block { next: self.newest.take(), value }));
        self.len += 1;
    }

    /// Frees the newest block.
    pub(super) fn pop(&mut self) {
        if let Some(block) = self.newest.take() {
            self.newest = block.next;
            self.len -= 1;
        }
    }

    /// Frees all blocks, without recursion: there may be millions.
    pub(super) fn clear(&mut self) {
        while self.newest.is_some() {
            self.pop();
        }
    }

    /// Visits each value, newest first. Each block is found by reading the one before.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        let blocks = std::iter::successors(self.newest.as_deref(), |block| block.next.as_deref());
        blocks.map(|block| &block.value)
    }
}

impl<T> Drop for Chain<T> {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_and_gives_back() {
        let mut chain = Chain::new();
        (0..5).for_each(|value| chain.push(value));
        chain.pop();
        assert_eq!((chain.len(), chain.iter().copied().collect::<Vec<i32>>()), (4, vec![3, 2, 1, 0]));
        chain.clear();
        chain.pop();
        assert_eq!((chain.len(), chain.iter().count()), (0, 0));
        (0..1_000_000).for_each(|value| chain.push(value));
    }
}
