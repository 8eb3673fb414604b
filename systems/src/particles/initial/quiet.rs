//! Catches panics of a library without printing them.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// `true` while panics of this thread are caught silently.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` and returns its result, or `None` if it panics. Nothing is printed. The panic hook is replaced
/// once by one that checks the thread; panics of other threads are printed as usual. `work` must not wait for
/// other tasks of a thread pool.
pub(super) fn catch_panic<T>(work: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = take_hook();
        set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                print(panic);
            }
        }));
    });
    let before = QUIET.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    QUIET.set(before);
    done.ok()
}

#[cfg(test)]
mod tests {
    use super::catch_panic;
    use std::process::Command;

    #[test]
    fn panics() {
        assert_eq!(catch_panic(|| 1), Some(1));
        assert_eq!(catch_panic(|| -> u32 { panic!("of the library") }), None);
        let other = std::thread::spawn(|| panic!("of somebody else"));
        assert!(catch_panic(|| other.join().is_err()).is_some_and(|failed| failed));
        assert!(std::panic::catch_unwind(|| panic!("after it")).is_err());
    }

    /// Runs in its own process, whose output is captured.
    #[test]
    fn a_panic_that_is_caught_leaves_no_line() {
        let itself = std::env::current_exe().expect("a test runs");
        let name = "particles::initial::quiet::tests::panics";
        let run = Command::new(itself)
            .args(["--exact", name, "--nocapture"])
            .output();
        let run = run.expect("it runs");
        let output = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{told}");
        assert!(
            output.contains("of somebody else") && output.contains("after it"),
            "{told}"
        );
        assert!(!output.contains("of the library"), "{told}");
    }
}
