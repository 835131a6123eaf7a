//! stub
/// stub
#[derive(Debug, Default)]
pub struct Store;
