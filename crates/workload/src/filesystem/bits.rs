//! Blocks and inodes that are free or taken.

/// Numbers with a free or taken bit each.
pub(super) struct Bits {
    words: Vec<u64>,
    pub(super) free: u64,
    /// All words before this one are full.
    lowest: usize,
}

impl Bits {
    pub(super) fn new(count: u64) -> Self {
        let mut words = vec![0u64; count.div_ceil(64) as usize];
        if let (Some(last), rest @ 1..) = (words.last_mut(), count % 64) {
            *last = u64::MAX << rest;
        }
        Self { words, free: count, lowest: 0 }
    }

    pub(super) fn take(&mut self, at: u32) -> bool {
        let (word, bit) = (at as usize / 64, 1u64 << (at % 64));
        let is_free = self.words.get(word).is_some_and(|w| w & bit == 0);
        if is_free {
            self.words[word] |= bit;
            self.free -= 1;
        }
        is_free
    }

    pub(super) fn take_first(&mut self) -> Option<u32> {
        while *self.words.get(self.lowest)? == u64::MAX {
            self.lowest += 1;
        }
        let at = (self.lowest * 64) as u32 + self.words[self.lowest].trailing_ones();
        self.take(at).then_some(at)
    }

    pub(super) fn release(&mut self, at: u32) {
        let word = at as usize / 64;
        self.words[word] &= !(1u64 << (at % 64));
        self.free += 1;
        self.lowest = self.lowest.min(word);
    }

    pub(super) fn has(&self, at: u32) -> bool {
        self.words.get(at as usize / 64).is_some_and(|word| word & (1 << (at % 64)) != 0)
    }

    /// Frees a number if it is taken, and says whether it was.
    pub(super) fn clear(&mut self, at: u32) -> bool {
        let taken = self.has(at);
        if taken {
            self.release(at);
        }
        taken
    }
}

/// Blocks that were taken for one purpose, in pieces.
pub(super) struct Region(Vec<(u32, u32)>);

impl Region {
    pub(super) fn take(blocks: u64, space: &mut Bits) -> Option<Self> {
        let mut pieces: Vec<(u32, u32)> = Vec::new();
        for _ in 0..blocks {
            let block = space.take_first()?;
            match pieces.last_mut() {
                Some((first, count)) if *first + *count == block => *count += 1,
                _ => pieces.push((block, 1)),
            }
        }
        Some(Self(pieces))
    }

    pub(super) fn len(&self) -> u64 {
        self.0.iter().map(|(_, count)| u64::from(*count)).sum()
    }

    /// The block at a place within the region.
    pub(super) fn block(&self, mut place: u64) -> Option<u32> {
        self.0.iter().find_map(|(first, count)| {
            let inside = place < u64::from(*count);
            let block = inside.then_some(*first + place as u32);
            place = place.saturating_sub(u64::from(*count));
            block
        })
    }

    #[cfg(test)]
    pub(super) fn contains(&self, block: u32) -> bool {
        self.0.iter().any(|(first, count)| (*first..*first + *count).contains(&block))
    }
}
