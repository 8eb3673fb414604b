//! The `nestar` command.

mod allocator;

#[global_allocator]
static ALLOCATOR: allocator::ExitOnOutOfMemory = allocator::ExitOnOutOfMemory;

fn main() -> std::process::ExitCode {
    nestar::cli::main(|app| app)
}
