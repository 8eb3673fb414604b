//! The `nestar` command.

mod allocator;

#[global_allocator]
static ALLOCATOR: allocator::Ending = allocator::Ending;

fn main() -> std::process::ExitCode {
    nestar::cli::main(|app| app)
}
