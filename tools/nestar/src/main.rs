//! The `nestar` command.

mod allocator;
mod cli;

#[global_allocator]
static ALLOCATOR: allocator::Ending = allocator::Ending;

fn main() -> std::process::ExitCode {
    cli::main()
}
