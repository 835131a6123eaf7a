//! How the server is set up: to measure the queue, not the disk, and the same on every machine.

/// The database superuser of a throwaway server.
pub(super) const USER: &str = "simq";

/// The port in the socket's name. No network port is opened.
pub(super) const PORT: u16 = 5432;

/// What a throwaway server runs with, beyond Postgres's own defaults.
///
/// Without `durable`, commits survive a crash of the server (`synchronous_commit` stays on: with it off, a killed server
/// forgets commits that it acknowledged) but not one of the operating system. With it, they survive both.
pub fn server(durable: bool) -> Vec<(&'static str, &'static str)> {
    let sync = if durable { "on" } else { "off" };
    vec![
        ("fsync", sync),
        ("full_page_writes", sync),
        ("synchronous_commit", "on"),
        ("wal_level", "minimal"),
        ("max_wal_senders", "0"),
        ("max_wal_size", "2GB"),
        ("checkpoint_timeout", "30min"),
        ("shared_buffers", "128MB"),
        ("max_connections", "200"),
        ("jit", "off"),
        ("max_parallel_workers_per_gather", "0"),
        // Small or missing /dev/shm and restricted huge pages are common in containers.
        ("dynamic_shared_memory_type", "mmap"),
        ("huge_pages", "off"),
        // Queue tables bloat fast.
        ("autovacuum", "on"),
        ("autovacuum_naptime", "5s"),
        ("log_min_messages", "warning"),
        ("timezone", "UTC"),
        ("listen_addresses", ""),
    ]
}

/// The arguments of initdb, but for the directory.
pub(super) fn initdb(major: u32) -> Vec<String> {
    let user = format!("--username={USER}");
    let mut args: Vec<String> = [&user, "--auth=trust", "--no-sync", "--locale=C", "--encoding=UTF8"].map(str::to_owned).into();
    if major >= 18 {
        // 18 turned them on; off, figures compare across majors.
        args.push("--no-data-checksums".to_owned());
    }
    args
}
