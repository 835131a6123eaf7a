//! Speaking to a person, on stderr. Nobody may be there to hear it, and that is no reason to stop.

use std::io::Write;

/// A line on stderr; its colours are taken out where nobody would see them.
pub(super) fn say(line: &str) {
    let _unheard = writeln!(anstream::stderr(), "{line}");
}
