#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| _ = decoders::check("bitbucket_cloud", bytes));
