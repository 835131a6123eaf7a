//! Settings in JSON as a person would write them.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::time::show;

/// Turns serde's `{secs, nanos}` into `"2s"`, and a window's nanoseconds likewise, wherever they are.
pub fn humanise(value: &mut Value) {
    match value {
        Value::Object(map) => match duration(map).or_else(|| window(map)) {
            Some(text) => *value = text,
            None => map.values_mut().for_each(humanise),
        },
        Value::Array(items) => items.iter_mut().for_each(humanise),
        _ => {}
    }
}

fn duration(map: &Map<String, Value>) -> Option<Value> {
    let (secs, nanos) = (map.get("secs")?.as_u64()?, map.get("nanos")?.as_u64()?);
    let whole = map.len() == 2;
    whole.then(|| show(Duration::new(secs, nanos as u32)).to_string().into())
}

fn window(map: &Map<String, Value>) -> Option<Value> {
    let text = |key: &str| match map.get(key)?.as_u64()? {
        // Later than every event of any run.
        u64::MAX => Some(Value::Null),
        nanos => Some(show(Duration::from_nanos(nanos)).to_string().into()),
    };
    let (from, until) = (text("from")?, text("until")?);
    (map.len() == 2).then(|| json!({ "from": from, "until": until }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_windows_read_as_people_write_them() {
        let mut value = json!({
            "latency": {"kind": "constant", "value": {"secs": 0, "nanos": 36_000_000}},
            "outages": [{"window": {"from": 1_000_000_000_u64, "until": 7_500_000_000_u64}, "mode": "refuse"}],
            "cap": null,
            "other": {"secs": 1, "nanos": 2, "more": 3},
        });
        humanise(&mut value);
        assert_eq!(
            value,
            json!({
                "latency": {"kind": "constant", "value": "36ms"},
                "outages": [{"window": {"from": "1s", "until": "7s 500ms"}, "mode": "refuse"}],
                "cap": null,
                "other": {"secs": 1, "nanos": 2, "more": 3},
            })
        );
    }
}
