//! Each life here is played by a process that one workload takes down, some seconds after it was begun with.

use super::*;

fn id(number: usize) -> WorkloadId {
    WorkloadId::deployment("shop", format!("web-{number:02}"))
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1_000)
}

/// A process in a cluster where each of `workloads` wants to be worked on from the start, and `fatal` end it.
struct World {
    ledger: Option<LifeNote>,
    workloads: Vec<WorkloadId>,
    fatal: Vec<WorkloadId>,
    /// Seconds of work that each has had.
    served: BTreeMap<WorkloadId, u64>,
}

impl World {
    fn new(workloads: usize, fatal: &[usize]) -> Self {
        let workloads = (0..workloads).map(id).collect();
        Self {
            ledger: None,
            workloads,
            fatal: fatal.iter().map(|number| id(*number)).collect(),
            served: BTreeMap::new(),
        }
    }

    /// One life, second by second; says when it ended, if it ended within `seconds`. A fatal workload ends it in the second in
    /// which it is begun with.
    fn live(&mut self, seconds: u64) -> Option<u64> {
        let mut lives = Lives::begin(self.ledger.clone(), at(0));
        let (mut begun, mut asked) = (BTreeSet::new(), BTreeSet::new());
        for second in 0..seconds {
            let turn = lives.tick(at(second));
            let wanted: Vec<WorkloadId> = self.workloads.iter().filter(|id| !asked.contains(*id)).cloned().collect();
            for id in wanted.into_iter().chain(turn) {
                asked.insert(id.clone());
                if lives.ask(&id) == Leave::Now {
                    begun.insert(id);
                }
            }
            if let Some(note) = lives.to_store() {
                self.ledger = Some(note);
                begun.extend(lives.stored(true));
            }
            if self.fatal.iter().any(|id| begun.contains(id)) {
                return Some(second);
            }
            for id in &begun {
                *self.served.entry(id.clone()).or_default() += 1;
            }
        }
        None
    }

    fn served(&self, number: usize) -> u64 {
        self.served.get(&id(number)).copied().unwrap_or_default()
    }
}

#[test]
fn what_takes_the_process_down_is_put_aside_by_the_third_life_and_the_others_are_served() {
    let mut world = World::new(4, &[2]);
    assert_eq!((world.live(3_600), world.live(3_600)), (Some(0), Some(0)), "nothing is known yet");
    // All four were under way when the second life ended. The first is tried alone, then two, of which one is fatal.
    let third = world.live(3_600).unwrap();
    assert!((10..=60).contains(&third), "{third}");
    assert_eq!((world.served(0) > 0, world.served(2)), (true, 0));
    // These two are named now: the others are free at once, for as long as these wait.
    let before = world.served(3);
    let fourth = world.live(3_600).unwrap();
    assert!((35..=60).contains(&fourth), "{fourth}");
    assert!(world.served(3) >= before + 25, "{}", world.served(3));
    let later = [(); 4].map(|()| world.live(9_999).unwrap());
    assert!(later[0] > 2 * fourth && later[1] > 2 * later[0] && later[3] == 3_600, "{later:?}");
}

// Faults: T2
#[test]
fn two_of_twelve_that_are_fatal_are_both_found_and_the_others_are_served() {
    let mut world = World::new(12, &[3, 9]);
    for _ in 0..9 {
        world.live(100_000);
    }
    let fair = (0..12).filter(|number| ![3, 9].contains(number)).all(|number| world.served(number) > 400);
    assert!(fair && world.served(3) == 0 && world.served(9) == 0, "{:?}", world.served);
}

#[test]
fn after_a_node_is_lost_twice_many_workloads_are_free_within_a_minute_or_so() {
    let mut world = World::new(40, &[]);
    let suspects = (0..40).map(|number| (id(number), 1)).collect();
    world.ledger = Some(LifeNote { open: true, abrupt: 1, suspects, ..LifeNote::default() });
    assert_eq!(world.live(75), None);
    assert!((0..40).all(|number| world.served(number) > 0), "{:?}", world.served);
}

#[test]
fn lives_that_end_in_order_leave_nothing_and_cost_one_write_each_way() {
    let mut lives = Lives::begin(None, at(0));
    assert_eq!((lives.to_store(), lives.close()), (None, None), "one that does nothing writes nothing");
    assert_eq!(lives.ask(&id(1)), Leave::Noted);
    let note = lives.to_store().unwrap();
    assert!(note.open && note.under_way.is_empty());
    assert_eq!(lives.ask(&id(2)), Leave::Noted, "not before it is stored");
    assert_eq!(lives.to_store(), None, "one at a time");
    assert_eq!(lives.stored(true), BTreeSet::from([id(1), id(2)]), "it says all there is to say");
    assert_eq!((lives.ask(&id(2)), lives.ask(&id(3))), (Leave::Now, Leave::Now));
    let (closed, over) = lives.close().unwrap();
    assert_eq!(over, note);
    let next = Lives::begin(Some(closed), at(0));
    assert_eq!((next.abrupt(), next.words()), (0, None));
}

#[test]
fn a_note_that_cannot_be_stored_holds_nothing_up() {
    let mut lives = Lives::begin(Some(LifeNote { open: true, ..LifeNote::default() }), at(0));
    assert_eq!(lives.ask(&id(1)), Leave::Noted);
    assert!(lives.to_store().is_some());
    assert_eq!(lives.stored(false), BTreeSet::from([id(1)]));
    assert!(lives.to_store().is_some(), "it is tried again");
}

#[test]
fn a_long_life_clears_everybody_and_what_only_rested_is_tried_with_a_reason() {
    let suspects = BTreeMap::from([(id(1), 1), (id(2), 3)]);
    let found = LifeNote { open: true, abrupt: 3, suspects, ..LifeNote::default() };
    let mut lives = Lives::begin(Some(found.clone()), at(0));
    assert!(lives.words().unwrap().starts_with("the last 4 lives of allclear ended abruptly"));
    assert_eq!((lives.ask(&id(1)), lives.ask(&id(2)), lives.ask(&id(3))), (Leave::Rests, Leave::Rests, Leave::Noted));
    assert!(lives.why_rests(&id(2)).unwrap().contains("3 times while it worked") && lives.why_rests(&id(3)).is_none());
    assert!(lives.why_rests(&id(2)).unwrap().contains("again 2m 40s after the start"));
    assert_eq!((lives.tick(at(9)), lives.tick(at(10))), (vec![], vec![id(1)]));
    assert_eq!(lives.why_rests(&id(1)), None, "it is being tried");
    assert_eq!([20, 159, 160].map(|now| lives.tick(at(now))), [vec![], vec![], vec![id(2)]]);
    assert_eq!((lives.tick(at(170)), lives.abrupt()), (vec![], 4), "nobody rests any more");
    assert_eq!((lives.tick(at(600)), lives.abrupt()), (vec![], 0), "nothing is left of it");
    assert_eq!(LifeNote { open: false, ..found }.why_rests(&id(1)), None, "a life that ended in order cleared it");
}

#[test]
fn the_note_has_a_bound_and_what_is_beyond_it_is_worked_on_all_the_same() {
    let mut lives = Lives::begin(Some(LifeNote { open: true, ..LifeNote::default() }), at(0));
    let first = (0..2 * NOTED_MAX).filter(|number| lives.ask(&id(*number)) == Leave::Noted).count();
    let note = lives.to_store().unwrap();
    assert_eq!((first, note.under_way.len()), (2 * NOTED_MAX, NOTED_MAX));
    assert_eq!(lives.stored(true).len(), 2 * NOTED_MAX);
    assert_eq!(lives.ask(&id(9_999)), Leave::Now);
    let text = serde_json::to_string(&note).unwrap();
    assert!(text.len() < 20_000, "{}", text.len());
    assert_eq!(serde_json::from_str::<LifeNote>(&text).unwrap(), note);
    assert_eq!(serde_json::from_str::<LifeNote>("{}").unwrap(), LifeNote::default(), "an older note");
}

#[test]
fn abrupt_ends_are_a_trouble_only_while_something_rests_for_them_or_for_a_minute() {
    let after = |seconds: u64| Timestamp::from_millis(seconds * 1_000);
    let well = LifeNote::<WorkloadId> { open: true, abrupt: 1, ..LifeNote::default() };
    let lives = Lives::begin(Some(well.clone()), after(0));
    assert!(lives.trouble(after(59)).is_some_and(|words| words.contains("the last 2 lives")));
    assert_eq!(lives.trouble(after(60)), None);
    let noted = LifeNote { under_way: BTreeSet::from([WorkloadId::deployment("shop", "web")]), ..well };
    assert!(Lives::begin(Some(noted), after(0)).trouble(after(600)).is_some());
    // One end alone is none.
    let one = LifeNote::<WorkloadId> { open: true, ..LifeNote::default() };
    assert_eq!(Lives::begin(Some(one), after(0)).trouble(after(0)), None);
}
