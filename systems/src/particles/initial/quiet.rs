//! Panics of a library that are an answer: nobody is told of them.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Whether panics of this thread are caught and say nothing.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// What `work` gives; nothing where it panics, without the line that a panic leaves. The hook that writes such lines is replaced once, by one
/// that asks the thread: what other threads have to say is told, now and later. `work` must not wait for other tasks of a pool.
pub(super) fn catch_panic<T>(work: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let tell = take_hook();
        set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                tell(panic);
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

    /// In a process of its own, whose messages nobody takes.
    #[test]
    fn a_panic_that_is_caught_leaves_no_line() {
        let itself = std::env::current_exe().expect("a test runs");
        let name = "particles::initial::quiet::tests::panics";
        let run = Command::new(itself)
            .args(["--exact", name, "--nocapture"])
            .output();
        let run = run.expect("it runs");
        let told = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{told}");
        assert!(
            told.contains("of somebody else") && told.contains("after it"),
            "{told}"
        );
        assert!(!told.contains("of the library"), "{told}");
    }
}
