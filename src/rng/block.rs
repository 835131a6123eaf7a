//! ChaCha with 8 rounds, a block of 64 bytes at a time.
//!
//! A keyed draw takes one or two numbers and is thrown away, while generators that are made for long streams compute four blocks ahead. The
//! numbers are those of `rand_chacha::ChaCha8Rng` under the same key, which the tests hold it against.
//!
//! Source: Bernstein, "ChaCha, a variant of Salsa20", 2008; a counter of 64 bits in words 12 and 13, and no nonce.

/// "expand 32-byte k".
const CONSTANTS: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];
const WORDS: usize = 16;

/// The numbers of one key, from the first on. Small and flat, since one is made for nearly every number.
#[derive(Debug)]
pub(super) struct Blocks {
    key: [u32; 8],
    counter: u64,
    words: [u32; WORDS],
    next: usize,
}

impl Blocks {
    /// At the first number of this key; nothing is computed before it is asked for.
    #[inline]
    pub(super) fn of(key: [u32; 8]) -> Blocks {
        Blocks { key, counter: 0, words: [0; WORDS], next: WORDS }
    }

    /// The key.
    pub(super) fn key(&self) -> [u32; 8] {
        self.key
    }

    #[inline]
    pub(super) fn next_u32(&mut self) -> u32 {
        if self.next >= WORDS {
            self.words = block(&self.key, self.counter);
            self.counter = self.counter.wrapping_add(1);
            self.next = 0;
        }
        let word = self.words[self.next];
        self.next += 1;
        word
    }

    #[inline]
    pub(super) fn next_u64(&mut self) -> u64 {
        let low = self.next_u32();
        u64::from(low) | (u64::from(self.next_u32()) << 32)
    }
}

fn block(key: &[u32; 8], counter: u64) -> [u32; WORDS] {
    let mut start = [0; WORDS];
    start[..4].copy_from_slice(&CONSTANTS);
    start[4..12].copy_from_slice(key);
    (start[12], start[13]) = (counter as u32, (counter >> 32) as u32);
    let mut words = start;
    for _ in 0..4 {
        for column in 0..4 {
            quarter(&mut words, [column, 4 + column, 8 + column, 12 + column]);
        }
        for diagonal in 0..4 {
            quarter(&mut words, [diagonal, 4 + (diagonal + 1) % 4, 8 + (diagonal + 2) % 4, 12 + (diagonal + 3) % 4]);
        }
    }
    for (word, start) in words.iter_mut().zip(start) {
        *word = word.wrapping_add(start);
    }
    words
}

/// A quarter round.
fn quarter(words: &mut [u32; WORDS], [a, b, c, d]: [usize; 4]) {
    for (left, right) in [(16, 12), (8, 7)] {
        words[a] = words[a].wrapping_add(words[b]);
        words[d] = (words[d] ^ words[a]).rotate_left(left);
        words[c] = words[c].wrapping_add(words[d]);
        words[b] = (words[b] ^ words[c]).rotate_left(right);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    proptest! {
        /// Read in words of both sizes, over the borders of several blocks.
        #[test]
        fn it_gives_the_numbers_of_a_well_kept_generator(key in any::<[u32; 8]>(), long in prop::collection::vec(any::<bool>(), 1..200)) {
            let bytes: Vec<u8> = key.iter().flat_map(|word| word.to_le_bytes()).collect();
            let bytes = bytes.try_into().expect("eight words are 32 bytes");
            let (mut ours, mut theirs) = (Blocks::of(key), ChaCha8Rng::from_seed(bytes));
            for long in long {
                if long {
                    prop_assert_eq!(ours.next_u64(), theirs.next_u64());
                } else {
                    prop_assert_eq!(ours.next_u32(), theirs.next_u32());
                }
            }
        }
    }
}
