//! Later.
use super::place::Place;
pub async fn measure(_: &Place) {}
