//! The boards: one contract, held by a Redis and by the stand-in of demo and simulations, and what is special to Redis.

pub mod contract;
mod distrust;
mod faults;
pub mod redis;

use std::sync::Arc;

use allclear::adapters::clock::SystemClock;
use kernel::id::Member;
use purge::ports::Board;
use sandbox::board::SharedBoard;

/// A server that outlives the handles to it.
pub(crate) trait Bench: Send + Sync {
    /// A way to it for one member, as a process has it.
    fn handle(&self, member: &str) -> Arc<dyn Board>;
    /// Makes it lose everything.
    fn wipe(&self);
}

/// Declares a test for each clause of the contract, for the bench that `$start` makes.
macro_rules! holds_the_contract {
    ($start:expr) => {
        holds_the_contract!($start;
            what_one_member_posts_the_others_hear_once
            only_what_changed_is_heard_again
            an_older_state_changes_nothing
            a_new_ledger_replaces_the_records_of_the_old_one
            a_workload_that_was_created_again_is_shown_although_its_revisions_begin_anew
            a_rollout_that_another_one_had_the_number_of_takes_the_place_of_its_copy
            a_removal_is_heard_and_holds_against_a_late_record
            a_loss_is_noticed_once_even_if_something_was_posted_since
            what_was_posted_anew_after_a_loss_is_heard_again
            many_records_are_heard_in_several_answers
            a_record_too_long_is_refused_alone
            an_absent_workload_gives_way_to_a_later_one
            beats_are_heard_and_answer_with_the_earlier_one
            a_member_is_woken_by_others_and_not_by_itself
            a_beat_wakes_the_others_if_it_is_news
            two_ways_to_one_server_are_one_server
            shuffled_histories_end_in_the_newest_state
        );
    };
    ($start:expr; $($clause:ident)*) => {
        $(
            #[tokio::test]
            async fn $clause() {
                let bench = $start;
                crate::board::contract::$clause(&bench).await;
            }
        )*
    };
}
use holds_the_contract;

mod shared {
    use super::*;

    impl Bench for SharedBoard {
        fn handle(&self, member: &str) -> Arc<dyn Board> {
            Arc::new(SharedBoard::handle(self, &Member(member.to_owned())))
        }

        fn wipe(&self) {
            SharedBoard::wipe(self);
        }
    }

    fn shared() -> SharedBoard {
        SharedBoard::new("shared", Arc::new(SystemClock::default()))
    }

    holds_the_contract!(shared());

    #[tokio::test]
    async fn a_member_that_is_cut_off_fails_alone_and_is_woken_when_it_is_back() {
        use futures_util::StreamExt as _;

        let (shared, cut) = (shared(), Member("eu-1".to_owned()));
        let (one, two) = (Bench::handle(&shared, "eu-1"), Bench::handle(&shared, "eu-2"));
        let mut wakes = one.wake_ups();
        wakes.next().await;
        shared.unreachable(&cut, true);
        assert!(one.identity().await.is_err());
        assert!(one.read(&Default::default()).await.unwrap_err().to_string().contains("refused"));
        two.read(&Default::default()).await.unwrap();
        shared.unreachable(&cut, false);
        wakes.next().await;
        let before = one.identity().await.unwrap();
        shared.restart_empty();
        assert_ne!(one.identity().await.unwrap(), before);
    }
}
