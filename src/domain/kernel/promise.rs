//! The one list of what allclear promises: each invariant with the id that docs/internals/promises.md gives it.
//!
//! The searches in `tests/model` judge all of them from outside, knowing everything that ever happened. Those that a machine can
//! judge by itself it says of each effect ([`Machine::breaks`](crate::machine::Machine::breaks)). The searches ask it at every
//! step, and so does production: there a broken promise is counted, and is an error in the log.

use std::fmt;

/// The enum, the list of all, and each one's id and sentence, from one table.
macro_rules! promises {
    ($($promise:ident, $id:literal, $says:literal;)*) => {
        /// Something that is always true, or that becomes true in the end.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Promise {
            $(#[doc = concat!($id, ": ", $says, ".")] $promise,)*
        }

        impl Promise {
            /// Every promise, in the order of their ids.
            pub const ALL: &[Promise] = &[$(Self::$promise),*];

            /// For example `GA-2`.
            pub const fn id(self) -> &'static str {
                match self { $(Self::$promise => $id),* }
            }

            /// The id and what is promised: `GA-2: numbers never decrease`.
            pub const fn words(self) -> &'static str {
                match self { $(Self::$promise => concat!($id, ": ", $says)),* }
            }
        }
    };
}

promises! {
    DurableFirst, "GA-1", "only what is durable is acted upon";
    NumbersRise, "GA-2", "numbers never decrease";
    NumbersMeanOne, "GA-2", "a number means one rollout";
    PhasesInOrder, "GA-3", "phases have one order";
    VotesStay, "GA-5", "a vote stays until its vector is closed";
    SameCode, "GA-9", "members that run other code are not purged together";
    VotesAreAChain, "GA-10", "a member's votes are a chain";
    CreatedOnce, "SAFE-1", "one creation per vector and distribution";
    CompleteTogether, "SAFE-2/3", "before the purge all had completed it, at one instant but for those gone past it";
    NothingForFailed, "SAFE-4", "nothing for a failed, withdrawn or superseded rollout";
    SettledAsAWhole, "SAFE-5", "an edge is settled only when all of it is";
    FailedAfterALook, "WAIT-1", "a rollout fails only after a fresh look";
    OldPodsFirst, "WAIT-2", "a vote waits for the last old pod, or for the bound";
    DeadlinesAhead, "WAIT-3", "no deadline is in the past";
    OneEnd, "TELL-1", "a vector ends in one way for all";
    NoticesKeepBytes, "TELL-2", "a notice keeps its bytes";
    ToldOfAWholeEdge, "TELL-3", "purge.completed is told of a whole edge";
    MadeIsFollowed, "LIVE-1", "a purge that was made is followed to its end, whatever is on hold";
    NothingLeftOpen, "LIVE-1", "nothing is left open";
    AllTold, "LIVE-1", "every notice was told";
    AboutWhatRuns, "LIVE-1", "the record is about what runs";
    EdgeAgrees, "LIVE-2", "the edge agrees with what completed last";
    NoneLeftOut, "LIVE-2", "a purge leaves out no distribution";
    RequestsPurged, "LIVE-3", "a request is purged";
    PurgedBesideWriters, "LIVE-4", "what completed is purged within a bound, while a writer of the workload never rests";
    AheadWaitsForNone, "LIVE-5", "a cluster that is ahead keeps no version from being purged for the others";
    OneChild, "WATCH-1", "an object has one child at most";
    NewestSight, "WATCH-2", "a child is shown the newest sight, and never an older one after it";
    NewsArrives, "WATCH-3", "after a sweep, a child that has room knows what was said since its start";
    BuriedOnce, "WATCH-4", "what is gone is buried once, and not looked for again";
    FoundIsNotNew, "WATCH-5", "what a first listing found is never taken for new";
    NotedWhenKept, "WATCH-6", "a scope is noted as listed when all that it contained is on record or at work";
    NumbersUsedOnce, "WATCH-7", "a number that this life was told of is not given out again";
    NoneLost, "WATCH-8", "after a sweep with no call under way, what was seen is on record, at work or left alone";
    AllSettles, "WATCH-9", "without further faults, everything is on record as it is, and nothing is left alone";
    OrderlyBegin, "LEAD-1", "nothing begins unless this replica leads and was not dismissed";
    LedgersApart, "LEAD-2", "what was built from one ledger never meets what was built from another";
    WholeEnds, "LEAD-3", "an end is never cut short";
    LeaseLast, "LEAD-4", "the lease is given back, and the process stops, after all has ended";
    LeaseLeft, "LEAD-6", "a replica that has stopped holds no lease";
    NoNeedlessRebuild, "LEAD-5", "nothing is rebuilt that lives";
    PromotionsDurable, "PL-1", "a promotion is carried out only once it is durable";
    RestsOnFreshReads, "PL-2", "a promotion starts only if a fresh look finds all it rests on ready at the revision";
    SeqsRise, "PL-3", "an environment's numbers never decrease";
    PromotionsInOrder, "PL-3", "a number means one promotion, and its phases have one order";
    OneRequest, "PL-3", "a promotion has one pull request at most";
    NotPromotedTwice, "PL-4", "what was completed or closed is promoted again only after a yes";
    YesCountsOnce, "PL-5", "a yes counts for the question it names, once";
    StandsUntilLeft, "PL-6", "a started promotion stands until the environment before it settles elsewhere";
    UnknownDecidesNothing, "PL-7", "what is unknown starts and withdraws nothing";
    AnswersBelong, "PL-10", "an answer counts for what was asked, and for that alone";
    ChoiceStands, "PL-11", "what a person chose is promoted once, and nothing that it was chosen over takes its place by itself";
    FrozenStartsNothing, "PL-12", "nothing starts into an environment while a freeze of the cluster that was seen selects it";
    PromotedInTheEnd, "PL-LIVE", "without further faults a revision is everywhere, or something that was told holds it";
    JobsDurable, "RP-1", "a Job is made or started only once that is durable";
    RunSeqsRise, "RP-2", "the numbers of a Repo's runs never decrease";
    RunsInOrder, "RP-2", "a number means one run, and its phases have one order";
    StartedOnce, "RP-3", "a Job is started once, while it is suspended, as the one whose UID is stored";
    OneAtATime, "RP-4", "one started Job of a Repo at most has not ended";
    LeftAlone, "RP-5", "a started Job is not touched before its end is stored";
    AppliedAsPlanned, "RP-6", "an apply under Plan has a yes for its run and fingerprint";
    NewestNext, "RP-8", "the newest head is run next, and those it replaced are named";
    RunInTheEnd, "RP-LIVE", "without further faults the wanted commit is run, or something that was told holds it";
    SeenThisWay, "LF-1", "a target is there only by a look of the present way to its cluster, after its collection was synced";
    SpareWatchesEnd, "LF-2", "a watch that no target needs ends after two minutes";
    TroubleStaysHome, "LF-3", "trouble with a collection touches its own targets only";
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}
