use proptest::prelude::*;
proptest! { #[test] fn x(a in 0..2) { prop_assert!(a < 2); } }
