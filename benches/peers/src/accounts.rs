//! Wall time and processor time of two trees of processes, as Linux counts them: in hundredths of a second.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What a stretch of work took.
#[derive(Clone, Copy, Default)]
pub struct Spent {
    pub wall: Duration,
    pub client: Duration,
    pub server: Duration,
}

/// A stretch of work under way.
pub struct Accounts {
    roots: [u32; 2],
    began: Instant,
    before: [u64; 2],
}

impl Accounts {
    pub fn open(client: u32, server: u32) -> Accounts {
        let roots = [client, server];
        Accounts { roots, before: ticks(roots), began: Instant::now() }
    }

    pub fn close(self) -> Spent {
        let wall = self.began.elapsed();
        let after = ticks(self.roots);
        let since = |which: usize| Duration::from_millis(10 * after[which].saturating_sub(self.before[which]));
        Spent { wall, client: since(0), server: since(1) }
    }
}

/// Processor time of each root, of its descendants, and of those that these have outlived.
fn ticks(roots: [u32; 2]) -> [u64; 2] {
    let mut processes = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let Some((_, fields)) = stat.rsplit_once(')') else { continue };
        let fields: Vec<u64> = fields.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
        processes.insert(pid, (fields[1] as u32, fields[11..15].iter().sum::<u64>()));
    }
    roots.map(|root| {
        let belongs = |mut pid: u32| {
            while let Some((parent, _)) = processes.get(&pid) {
                if pid == root {
                    return true;
                }
                pid = *parent;
            }
            false
        };
        processes.iter().filter(|(pid, _)| belongs(**pid)).map(|(_, (_, ticks))| ticks).sum()
    })
}

/// The contender's side: it is ready, waits until it is told to go.
pub async fn ready() -> anyhow::Result<()> {
    println!("ready");
    tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new())).await??;
    Ok(())
}

/// It is done: waits to be ended.
pub async fn done() -> anyhow::Result<()> {
    println!("done");
    std::future::pending().await
}
