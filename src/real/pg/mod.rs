//! stub

pub mod throwaway;
