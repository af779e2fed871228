use super::*;

#[test]
fn a_pointer_is_told_from_a_file() {
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
    assert!(Snapshot::is_pointer(pointer));
    assert!(!Snapshot::is_pointer(b"version https://git-lfs"));
    assert!(!Snapshot::is_pointer(&[pointer.as_slice(), &[b' '; POINTER_BYTES_MAX]].concat()));
}
