//! What a claim's statement gives, as a claim.

use std::sync::Arc;
use std::time::Duration;

use sqlx::error::BoxDynError;
use sqlx::postgres::{PgTypeInfo, PgValueRef};
use sqlx::{Decode, Postgres, Type, TypeInfo};

use crate::job::{JobId, Memory};
use crate::queue::{Claim, Token};

/// A moment of the server's clock, in microseconds since the year 2000. Only differences of two of them leave this room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamp(i64);

impl Stamp {
    /// How long this is after `earlier`; not at all if it is before it.
    pub(super) fn since(self, earlier: Stamp) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0).max(0) as u64)
    }
}

impl Type<Postgres> for Stamp {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_name("timestamptz")
    }

    fn compatible(given: &PgTypeInfo) -> bool {
        given.name().eq_ignore_ascii_case("timestamptz")
    }
}

impl Decode<'_, Postgres> for Stamp {
    fn decode(value: PgValueRef<'_>) -> Result<Stamp, BoxDynError> {
        // The binary form, which is what prepared statements are answered in, is these microseconds.
        let bytes: [u8; 8] = value.as_bytes()?.try_into()?;
        Ok(Stamp(i64::from_be_bytes(bytes)))
    }
}

/// Text that goes where claims go without being copied again.
#[derive(Clone, Debug)]
pub(super) struct Text(Arc<str>);

impl Type<Postgres> for Text {
    fn type_info() -> PgTypeInfo {
        <str as Type<Postgres>>::type_info()
    }
}

impl Decode<'_, Postgres> for Text {
    fn decode(value: PgValueRef<'_>) -> Result<Text, BoxDynError> {
        Ok(Text(value.as_str()?.into()))
    }
}

/// A job as a claim took it.
#[derive(Debug)]
pub(super) struct Taken {
    /// Which of the claim's batches it is in, from 0.
    pub(super) part: usize,
    /// Minus the priority.
    pub(super) rank: i32,
    pub(super) id: i64,
    /// It had never been claimed.
    pub(super) is_fresh: bool,
    pub(super) kind: Text,
    pub(super) payload: Text,
    pub(super) retries: i32,
    pub(super) max_retries: i32,
    pub(super) last_delay_ns: Option<i64>,
    pub(super) created: Stamp,
    pub(super) due: Stamp,
    pub(super) now: Stamp,
}

impl Taken {
    /// The claim of it, under this name.
    pub(super) fn claim(self, token: Token) -> Claim {
        Claim {
            job: JobId(self.id as u64),
            token,
            kind: self.kind.0,
            payload: self.payload.0,
            memory: Memory {
                retries: self.retries as u32,
                max_retries: self.max_retries as u32,
                last_delay: self.last_delay_ns.map(|ns| Duration::from_nanos(ns.max(0) as u64)),
                age: self.now.since(self.created),
            },
            lag: self.now.since(self.due),
        }
    }
}
