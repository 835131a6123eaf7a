//! The known word that a mistyped one was probably meant to be.

/// The candidate with the fewest edits, if they are few for the length of the word.
pub(crate) fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let allowed = (word.chars().count() / 3).max(1);
    let scored = candidates.iter().map(|candidate| (edits(word, candidate), *candidate));
    scored.filter(|(edits, _)| *edits <= allowed).min_by_key(|(edits, _)| *edits).map(|(_, candidate)| candidate)
}

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b` (optimal string alignment), where
/// `-` and `_` count as equal.
fn edits(a: &str, b: &str) -> usize {
    let letters = |text: &str| text.to_lowercase().replace('-', "_").chars().collect::<Vec<char>>();
    let (a, b) = (letters(a), letters(b));
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_meant() {
        let keys = ["count", "slots", "stampede_window", "max_retries", "at"];
        for (typed, meant) in
            [("cuont", "count"), ("slot", "slots"), ("stampede-window", "stampede_window"), ("max_retry", "max_retries")]
        {
            assert_eq!(nearest(typed, &keys), Some(meant), "{typed}");
        }
        assert_eq!(nearest("elephants", &keys), None);
        assert_eq!(nearest("x", &keys), None);
    }

    #[test]
    fn a_swap_of_neighbours_is_one_edit() {
        assert_eq!(edits("ab", "ba"), 1);
        assert_eq!(edits("", "abc"), 3);
    }
}
