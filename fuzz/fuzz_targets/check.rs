//! Files of contexts from anywhere.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| {
    let report = rot_problems::own::check(file, 100).unwrap();
    let lines = file.split(|&byte| byte == b'\n').count();
    assert!(report.findings.iter().all(|finding| finding.line <= lines + 1));
});
