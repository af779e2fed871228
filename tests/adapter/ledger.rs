//! The ledgers: one contract, held by every backend, and what is special to each.

pub mod contract;
mod journal;
pub mod kubernetes;

use std::sync::Arc;

use allclear::adapters::ledger::memory::MemoryLedger;
use async_trait::async_trait;
use purge::ports::Ledger;

/// A ledger that outlives the handles to it.
#[async_trait]
pub trait Bench: Send + Sync {
    /// Another handle to the same ledger, the way a restarted process or a second worker would open it.
    async fn handle(&self) -> Arc<dyn Ledger>;
    /// Deletes the ledger, as an operator would.
    async fn delete(&self);
}

/// Declares a test for each clause of the contract, for the bench that `$start` makes.
macro_rules! holds_the_contract {
    ($start:expr) => {
        holds_the_contract!($start;
            what_was_stored_is_there_after_a_restart
            looking_shows_what_is_stored
            a_first_record_has_revision_one
            a_revision_is_stored_only_on_top_of_the_one_before
            storing_what_is_there_succeeds_again
            a_conflict_shows_what_is_there
            a_writer_of_an_earlier_life_is_refused
            a_writer_of_another_rollout_of_the_same_number_is_refused
            a_record_is_loaded_as_it_is_now
            a_removed_record_leaves_a_floor_for_the_next_one
            removing_is_by_revision_and_removing_nothing_succeeds
            many_records_are_stored_together_each_by_its_own_rules
            the_origin_stays_until_the_ledger_is_deleted
            the_members_are_stored_over_those_that_are_known_and_no_others
            what_is_listed_stays_so_as_long_as_the_ledger_lives
            what_a_life_leaves_is_found_by_the_next
            settings_in_force_are_left_for_whoever_only_looks
            deliveries_are_kept_until_they_are_removed
            two_writers_never_lose_a_field
            a_record_too_large_is_refused
            ten_thousand_records_survive_a_restart
        );
    };
    ($start:expr; $($clause:ident)*) => {
        $(
            #[tokio::test]
            async fn $clause() {
                let bench = $start;
                crate::ledger::contract::$clause(&bench).await;
            }
        )*
    };
}
use holds_the_contract;

mod memory {
    use super::*;

    struct Memory(std::sync::Mutex<(u32, MemoryLedger)>);

    impl Memory {
        fn start() -> Self {
            Self(std::sync::Mutex::new((0, MemoryLedger::new("origin-0".into()))))
        }
    }

    #[async_trait]
    impl Bench for Memory {
        async fn handle(&self) -> Arc<dyn Ledger> {
            Arc::new(self.0.lock().unwrap().1.clone())
        }

        async fn delete(&self) {
            let mut ledger = self.0.lock().unwrap();
            let number = ledger.0 + 1;
            *ledger = (number, MemoryLedger::new(format!("origin-{number}").as_str().into()));
        }
    }

    holds_the_contract!(Memory::start());
}
