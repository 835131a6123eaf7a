use super::Story;
use super::canvas::{Canvas, Drawn};
use crate::metrics::Comparison;
pub(super) fn title(_: &Comparison) -> String { String::new() }
pub(super) fn size(_: usize) -> (u32, u32) { (1200, 820) }
pub(super) fn draw(_: &Story<'_>, _: &Canvas<'_>) -> Drawn { Ok(()) }
