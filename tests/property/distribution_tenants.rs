//! A record that names a distribution tenant is of a form of its own, wherever it does; any other one is as it always was.

use proptest::prelude::*;
use purge::records::record_codec::{decode, encode, form};

use crate::record::record;

/// The last form that knows no distribution tenant.
const BEFORE: u32 = 5;

proptest! {
    #[test]
    fn a_record_that_names_a_distribution_tenant_anywhere_is_of_the_sixth_form(record in record()) {
        let written = encode(&record).unwrap();
        prop_assert!(form(&record) <= BEFORE);
        // The same with another id in each place where this one was.
        let renamed = written.replace("\"E1ABC\"", "\"dt_1ABC\"");
        let read = decode(renamed.as_bytes()).unwrap();
        if renamed == written {
            prop_assert_eq!(form(&read), form(&record));
        } else {
            prop_assert_eq!(form(&read), 6);
            let again = encode(&read).unwrap();
            prop_assert!(again.starts_with("{\"z\":6,"), "{}", again);
            prop_assert_eq!(decode(again.as_bytes()).unwrap(), read);
        }
    }
}
