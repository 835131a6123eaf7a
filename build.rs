//! Builds anew when a migration is added: `sqlx::migrate!` embeds the folder, and cargo sees no reason in a new file.

fn main() {
    println!("cargo:rerun-if-changed=migrations");
}
