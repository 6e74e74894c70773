fn main() {
    for f in std::env::args().skip(1) {
        println!("{:#?}", rot_nn::parity::compare(f.as_ref()).unwrap());
    }
}
