use super::*;

/// 2026-11-28T00:00:00Z, by `date -u -d 2026-11-28 +%s`.
const NOVEMBER: i64 = 1_795_824_000_000;
/// 2026-12-01T00:00:00Z, by the same.
const DECEMBER: i64 = 1_796_083_200_000;

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn account(name: &str) -> AccountName {
    name.parse().unwrap()
}

fn purge(account_name: &str, reference: &str, paths: u64, at_ms: i64) -> Event {
    let purge = Purge {
        account: account(account_name),
        key: reference.to_owned(),
        paths,
        month: Month::of(at_ms),
        is_saved: false,
    };
    Event::Counted(purge, at_ms)
}

fn saved(reference: &str, paths: u64) -> Event {
    let Event::Counted(purge, at_ms) = purge("a", reference, paths, NOVEMBER) else { unreachable!() };
    Event::Counted(Purge { is_saved: true, ..purge }, at_ms)
}

/// One that has read this.
fn read(budget: u64, kept: Option<Book>) -> Bill {
    let mut bill = Bill::new(budget);
    assert_eq!(bill.step(at(0), Event::Begun), [Effect::Read]);
    drop(bill.step(at(1), Event::Read(kept.map(Box::new), NOVEMBER)));
    bill
}

fn sums(bill: &Bill) -> Vec<(String, u64, u64)> {
    let accounts = &bill.book().expect("it is read").accounts;
    accounts.iter().map(|(name, sum)| (name.to_string(), sum.paths, sum.saved)).collect()
}

/// The book that was to be stored last.
fn stored(effects: &[Effect]) -> Option<Book> {
    effects.iter().rev().find_map(|effect| match effect {
        Effect::Store(book) => Some(Book::parse(&book.text()).expect("a book")),
        Effect::Read | Effect::Tell(..) => None,
    })
}

#[test]
fn a_month_is_that_of_utc() {
    for (wall_ms, words) in [
        (NOVEMBER, "2026-11"),
        (DECEMBER - 1, "2026-11"),
        (DECEMBER, "2026-12"),
        (0, "1970-01"),
        (951_782_399_999, "2000-02"),
        (951_868_799_999, "2000-02"),
        (951_868_800_000, "2000-03"),
        (-1, "1969-12"),
    ] {
        assert_eq!(Month::of(wall_ms).words(), words, "{wall_ms}");
    }
    for month in 0..4_800 {
        let month = Month(1_900 * 12 + month);
        assert_eq!((Month::of(month.begins_ms()), Month::of(month.begins_ms() - 1).next()), (month, month));
    }
    assert_eq!(Month::of(DECEMBER).begins_ms(), DECEMBER);
}

#[test]
fn each_account_has_its_sums_and_a_repeated_call_counts_once() {
    let mut bill = read(0, None);
    drop(bill.step(at(2), purge("a", "r1", 3, NOVEMBER)));
    drop(bill.step(at(3), purge("b", "r2", 5, NOVEMBER)));
    drop(bill.step(at(4), purge("a", "r1", 3, NOVEMBER)));
    drop(bill.step(at(5), saved("r3", 7)));
    drop(bill.step(at(6), saved("r3", 7)));
    assert_eq!(sums(&bill), [("a".to_owned(), 3, 7), ("b".to_owned(), 5, 0)]);
}

#[test]
fn a_life_goes_on_from_what_was_stored_and_counts_what_is_ordered_again_once() {
    let mut bill = read(0, None);
    let first = stored(&bill.step(at(2), purge("a", "r1", 3, NOVEMBER))).expect("it is stored");
    // The second is accepted while the first is being stored, and the process dies.
    assert_eq!(bill.step(at(3), purge("a", "r2", 4, NOVEMBER)), []);
    let mut next = read(0, Some(first));
    for (reference, paths) in [("r1", 3), ("r2", 4)] {
        drop(next.step(at(2), purge("a", reference, paths, NOVEMBER)));
    }
    assert_eq!(sums(&next), [("a".to_owned(), 7, 0)]);
}

#[test]
fn what_is_accepted_before_the_book_is_read_waits_for_it() {
    let kept = stored(&read(0, None).step(at(2), purge("a", "r0", 10, NOVEMBER))).unwrap();
    let mut bill = Bill::new(0);
    drop(bill.step(at(0), Event::Begun));
    drop(bill.step(at(1), purge("a", "r1", 1, NOVEMBER)));
    drop(bill.step(at(2), Event::ReadFailed("no answer".to_owned())));
    assert_eq!((bill.book(), bill.failure()), (None, Some("no answer")));
    let again = bill.next_deadline().expect("it is read again");
    assert_eq!(bill.tick(again), [Effect::Read]);
    let effects = bill.step(again, Event::Read(Some(Box::new(kept)), NOVEMBER));
    assert_eq!(sums(&bill), [("a".to_owned(), 11, 0)]);
    assert!(stored(&effects).is_some_and(|book| book.accounts[&account("a")].paths == 11));
}

#[test]
fn one_store_is_under_way_and_what_failed_is_stored_again() {
    let mut bill = read(0, None);
    assert!(stored(&bill.step(at(2), purge("a", "r1", 1, NOVEMBER))).is_some());
    assert_eq!(bill.step(at(3), purge("a", "r2", 1, NOVEMBER)), []);
    let second = stored(&bill.step(at(4), Event::Stored)).expect("what came since");
    assert_eq!(second.accounts[&account("a")].paths, 2);
    assert_eq!(bill.step(at(5), Event::StoreFailed("no".to_owned())), []);
    let again = bill.next_deadline().unwrap();
    assert!(again > at(5) && stored(&bill.tick(again)).is_some());
    assert_eq!(bill.step(again, Event::Stored), []);
}

#[test]
fn a_budget_is_told_once_in_a_month_and_for_each_account() {
    let tells = |effects: Vec<Effect>| -> Vec<(String, u64)> {
        let told = effects.into_iter().filter_map(|effect| match effect {
            Effect::Tell(name, paths) => Some((name.to_string(), paths)),
            Effect::Read | Effect::Store(_) => None,
        });
        told.collect()
    };
    let mut bill = read(5, None);
    assert_eq!(tells(bill.step(at(2), purge("a", "r1", 4, NOVEMBER))), []);
    let effects = bill.step(at(3), purge("a", "r2", 1, NOVEMBER));
    assert_eq!(tells(effects), [("a".to_owned(), 5)]);
    assert_eq!(bill.over_budget().len(), 1);
    assert_eq!(tells(bill.step(at(4), purge("a", "r3", 1, NOVEMBER))), []);
    assert_eq!(tells(bill.step(at(5), purge("b", "r4", 9, NOVEMBER))), [("b".to_owned(), 9)]);
    let kept = stored(&bill.step(at(6), Event::Stored)).expect("told, too");
    let mut next = read(5, Some(kept));
    assert_eq!(tells(next.step(at(2), purge("a", "r5", 1, NOVEMBER))), [], "an earlier life has told it");
    assert_eq!(tells(next.step(at(3), purge("a", "r6", 6, DECEMBER))), [("a".to_owned(), 6)], "another month");
}

#[test]
fn a_new_month_begins_with_nothing_by_itself_and_late_news_of_the_old_one_is_not_on_it() {
    let mut bill = read(0, None);
    drop(bill.step(at(1_000), purge("a", "r1", 4, DECEMBER - 1_000)));
    drop(bill.step(at(1_001), Event::Stored));
    assert_eq!(bill.next_deadline(), Some(at(2_000)));
    drop(bill.tick(at(2_000)));
    assert_eq!(sums(&bill), []);
    assert_eq!(bill.next_deadline(), Some(at(2_000 + 31 * 86_400_000)));
    drop(bill.step(at(2_001), purge("a", "r1", 4, DECEMBER)));
    let Event::Counted(late, _) = purge("a", "r2", 9, NOVEMBER) else { unreachable!() };
    drop(bill.step(at(2_002), Event::Counted(late, DECEMBER)));
    assert_eq!(sums(&bill), [], "one was counted in November, the other is on its bill");
    drop(bill.step(at(2_003), purge("a", "r3", 2, DECEMBER)));
    assert_eq!(sums(&bill), [("a".to_owned(), 2, 0)]);
}

#[test]
fn a_clock_that_was_wrong_by_months_does_not_stop_the_count() {
    let (january, march) = (Month::of(DECEMBER).next(), Month::of(DECEMBER).next().next().next());
    let mut bill = read(0, None);
    let kept = stored(&bill.step(at(2), purge("a", "r1", 9, march.begins_ms()))).expect("it is stored");
    assert_eq!(kept.month, march);
    drop(bill.step(at(3), purge("a", "r2", 2, NOVEMBER)));
    assert_eq!(sums(&bill), [("a".to_owned(), 2, 0)], "the clock was set right");
    let mut next = read(0, Some(kept));
    drop(next.step(at(2), purge("a", "r3", 4, NOVEMBER)));
    assert_eq!(sums(&next), [("a".to_owned(), 4, 0)], "by the next life");
    // A clock that differs by a little does not take the sums away.
    for (kept, begun) in [(january, Month::of(NOVEMBER)), (Month::of(DECEMBER), Month::of(DECEMBER))] {
        let bill = read(0, Some(Book { month: kept, ..Book::default() }));
        assert_eq!(bill.book().map(|book| book.month), Some(begun));
    }
}

#[test]
fn the_month_of_an_invalidation_is_by_the_word_of_cloudfront_unless_that_is_yet_to_come() {
    for (created_ms, wall_ms, words) in [
        (None, NOVEMBER, "2026-11"),
        (Some(DECEMBER - 1), DECEMBER + 1, "2026-11"),
        (Some(DECEMBER), DECEMBER - 1, "2026-12"),
        (Some(DECEMBER), NOVEMBER, "2026-11"),
        (Some(i64::MAX), i64::MAX, "292278994-08"),
    ] {
        assert_eq!(Month::of_invalidation(created_ms, wall_ms).words(), words, "{created_ms:?} {wall_ms}");
    }
}

#[test]
fn the_first_thousand_is_free() {
    let words = |paths| Sum { paths, saved: 2 }.words();
    assert_eq!(words(1_000), "1000 paths (within the free 1000), 2 saved by sharing");
    assert_eq!(words(1_203), "1203 paths (203 beyond the free 1000: 1.01 USD), 2 saved by sharing");
    assert_eq!(Sum { paths: 1_001, saved: 0 }.thousandths(), 5);
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut bill = read(0, None);
    for each in 0..2 * COUNTED_MAX {
        drop(bill.step(at(2), purge("a", &format!("r{each}"), 1, NOVEMBER)));
    }
    assert_eq!(bill.book().unwrap().counted.len(), COUNTED_MAX);
    assert_eq!(sums(&bill)[0].1, 2 * COUNTED_MAX as u64);
}
