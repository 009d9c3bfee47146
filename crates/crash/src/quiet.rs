//! Turns a panic of the code under test into a finding, without a word on standard error.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    static LISTENING: Cell<bool> = const { Cell::new(false) };
}

static HOOK: Once = Once::new();

/// Runs `act`; a panic is answered as what it said.
pub(crate) fn catch<T>(act: impl FnOnce() -> T) -> Result<T, String> {
    HOOK.call_once(|| {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !LISTENING.get() {
                others(info);
            }
        }));
    });
    let before = LISTENING.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(act));
    LISTENING.set(before);
    outcome.map_err(|panic| format!("panic: {}", said(&*panic)))
}

fn said(panic: &(dyn Any + Send)) -> &str {
    match (panic.downcast_ref::<&'static str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (_, Some(text)) => text,
        _ => "of unknown kind",
    }
}
