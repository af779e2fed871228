//! What is looked for at the edge, in a record as text.

use kernel::id::{NoticeId, Reference};
use kernel::machine::Timestamp;
use kernel::names::paths::PathSet;
use notices::notice::{Kind, Notice};
use proof::look::{Again, Look};
use proptest::collection::{btree_map, btree_set};
use proptest::option;
use proptest::prelude::*;
use purge::records::record::{Proving, Published};
use purge::records::record_codec::{decode, encode, encode_published};

use crate::record::{distribution, notice, record, seen, seq, text};

prop_compose! {
    fn proving()(
        distribution in distribution(), seq in seq(), rollout in text(), change in text(), seen in option::of(seen()),
        names in btree_set("[a-z]{1,8}", 1..4), noticed in btree_set(text(), 0..2), marker: bool,
        [widened, only_looks] in any::<[bool; 2]>(), (now, called, after_s) in any::<(u32, bool, Option<u32>)>(),
    ) -> Proving {
        let now = Timestamp::from_millis(now.into());
        let pages = names.iter().map(|name| format!("{name}.example.com/").try_into().unwrap());
        let marker = marker.then(|| "json:/version=3".parse().unwrap());
        let look = Look::begin(now, called.then_some(now).into(), PathSet::default(), pages, marker, Again { max: 1, after_s }).unwrap();
        let noticed = noticed.into_iter().map(NoticeId).collect();
        Proving { distribution, seq, rollout, change, look: look.stored().clone(), noticed, seen, widened, only_looks }
    }
}

proptest! {
    // An older program would drop what is being looked for, and could not read what is told of it. The other members never see it.
    #[test]
    fn a_record_that_looks_at_the_edge_is_of_the_fifth_form_and_is_shown_to_the_group_without(
        quiet in record(), looks in btree_map(text().prop_map(Reference), proving().prop_map(Box::new), 1..3), notice in notice(), tells: bool,
    ) {
        let mut record = quiet.clone();
        if tells {
            record.untold.push(Notice { kind: Kind::EdgeStale, ..notice });
        } else {
            record.looks = looks.into();
        }
        let written = encode(&record).unwrap();
        prop_assert!(written.starts_with("{\"z\":5,"), "{}", written);
        prop_assert_eq!(&decode(written.as_bytes()).unwrap(), &record);
        let shown = encode_published(&Published::Record(Box::new(record))).unwrap();
        prop_assert_eq!(shown, encode(&quiet).unwrap());
    }
}
