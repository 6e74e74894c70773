//! Every example printed in the paper's appendices, with its corrections: in the CoT context of
//! 408+351 the sub-answers are present; the addition with a carry is 317+65, as its contexts show;
//! of two longest palindromes, the one that the procedure finds.

use rot_core::{Context, Text, ThoughtGraph};

struct Unfolded {
    answer: String,
    contexts: Vec<(String, String)>,
    cot: String,
}

fn unfold(question: &str) -> Unfolded {
    let question = rot_problems::read(question).expect("a question of the paper");
    let mut graph = ThoughtGraph::default();
    let root = graph.unfold(question.problem, &question.tokens).expect("a small problem");
    let contexts = graph.contexts().map(|id| {
        let mut context = Context::default();
        graph.write_rot(id, &mut context);
        (Text(&context.x).to_string(), Text(&context.y).to_string())
    });
    let mut cot = Context::default();
    assert!(graph.write_cot(root, 10_000, &mut cot));
    Unfolded {
        answer: Text(graph.answer(root)).to_string(),
        contexts: contexts.collect(),
        cot: Text(&cot.x).to_string(),
    }
}

/// The problem has so many unique contexts, and among them the given ones, counted from 1.
fn has_contexts(question: &str, count: usize, expected: &[(usize, &str)]) {
    let unfolded = unfold(question);
    assert_eq!(unfolded.contexts.len(), count, "{question}");
    for &(number, x) in expected {
        assert_eq!(unfolded.contexts[number - 1].0, x, "{question}: X{number}");
    }
}

/// Figure "An example of the Recursion of Thought inference" and the contexts in "Examples of CoT
/// Training Data".
#[test]
fn addition_without_carry() {
    has_contexts(
        "408+351",
        5,
        &[
            (1, "<GO>408+351=<GO>8+1=9<STOP><GO>40+35=75<STOP>759<STOP>"),
            (2, "<GO>8+1=9<STOP>"),
            (3, "<GO>40+35=<GO>0+5=5<STOP><GO>4+3=7<STOP>75<STOP>"),
            (4, "<GO>0+5=5<STOP>"),
            (5, "<GO>4+3=7<STOP>"),
        ],
    );
}

/// Figure "The target sequence" and the table in "Fine-Tuning GPT-3".
#[test]
fn target_sequences() {
    let unfolded = unfold("408+351");
    let pads = |count| "<PAD>".repeat(count);
    let y1 = format!(
        "{}<GO>8+1=<THINK><PAD><GO>40+35=<THINK><PAD><PAD>759<STOP>",
        pads("G408+351=".len())
    );
    assert_eq!(unfolded.contexts[0].1, y1);
    let y3 = format!("{}<GO>0+5=<THINK><PAD><GO>4+3=<THINK><PAD>75<STOP>", pads(7));
    assert_eq!(unfolded.contexts[2].1, y3);
}

#[test]
fn chains_of_thought() {
    assert_eq!(
        unfold("408+351").cot,
        "<GO>408+351=<GO>8+1=9<STOP><GO>40+35=<GO>0+5=5<STOP><GO>4+3=7<STOP>75<STOP>759<STOP>"
    );
    assert_eq!(
        unfold("34*5").cot,
        "<GO>34*5=<GO>4*5=20<STOP><GO>3*5=15<STOP><TAIL>150+20=<GO>0+0=0<STOP><GO>15+2=\
         <GO>5+2=7<STOP>17<STOP>170<STOP>"
    );
}

#[test]
fn multiplication_by_a_digit() {
    has_contexts(
        "34*5",
        7,
        &[
            (1, "<GO>34*5=<GO>4*5=20<STOP><GO>3*5=15<STOP><TAIL>150+20=<THINK>"),
            (2, "<GO>4*5=20<STOP>"),
            (3, "<GO>3*5=15<STOP>"),
            (4, "<GO>150+20=<GO>0+0=0<STOP><GO>15+2=17<STOP>170<STOP>"),
            (5, "<GO>0+0=0<STOP>"),
            (6, "<GO>15+2=<GO>5+2=7<STOP>17<STOP>"),
            (7, "<GO>5+2=7<STOP>"),
        ],
    );
}

/// "Problem Specifications".
#[test]
fn questions_and_answers() {
    for (question, answer) in [
        ("<GO>7÷3=", "2<R>1<STOP>"),
        ("<GO>1234<LCS>2468=", "24;2<STOP>"),
        // Printed as 12321;5, which is as long; the paper's own procedure finds this one.
        ("<GO><LPS>41253261=", "12521;5<STOP>"),
        ("<GO><KNAPSACK>5&12,25&15,19&18@40=", "25&15,19&18$44<STOP>"),
        ("<GO><MCM>4×2,2×8,8×3=", "4×2,(2×8,8×3);72<STOP>"),
        ("<GO><SORT>139,160,434,796,41=", "41,139,160,434,796<STOP>"),
    ] {
        assert_eq!(unfold(question).answer, answer, "{question}");
    }
}

#[test]
fn addition_with_a_carry() {
    has_contexts(
        "317+65",
        6,
        &[
            (1, "<GO>317+65=<GO>7+5=12<STOP><GO>31+1=32<STOP><GO>32+6=38<STOP>382<STOP>"),
            (2, "<GO>7+5=12<STOP>"),
            (3, "<GO>31+1=<GO>1+1=2<STOP>32<STOP>"),
            (4, "<GO>1+1=2<STOP>"),
            (5, "<GO>32+6=<GO>2+6=8<STOP>38<STOP>"),
            (6, "<GO>2+6=8<STOP>"),
        ],
    );
}

#[test]
fn subtraction() {
    has_contexts(
        "432-216",
        7,
        &[
            (1, "<GO>432-216=<GO>12-6=6<STOP><GO>43-1=42<STOP><GO>42-21=21<STOP>216<STOP>"),
            (2, "<GO>12-6=6<STOP>"),
            (3, "<GO>43-1=<GO>13-1=12<STOP>42<STOP>"),
            (4, "<GO>13-1=12<STOP>"),
            (5, "<GO>42-21=<GO>12-1=11<STOP><GO>4-2=2<STOP>21<STOP>"),
            (6, "<GO>12-1=11<STOP>"),
            (7, "<GO>4-2=2<STOP>"),
        ],
    );
}

#[test]
fn multiplication() {
    has_contexts(
        "43*21",
        12,
        &[
            (1, "<GO>43*21=<GO>43*1=43<STOP><GO>43*2=86<STOP><TAIL>860+43=<THINK>"),
            (2, "<GO>43*1=43<STOP>"),
            (3, "<GO>43*2=<GO>3*2=6<STOP><GO>4*2=8<STOP><TAIL>80+6=<THINK>"),
            (4, "<GO>3*2=6<STOP>"),
            (5, "<GO>4*2=8<STOP>"),
            (6, "<GO>80+6=<GO>0+6=6<STOP>86<STOP>"),
            (7, "<GO>0+6=6<STOP>"),
            (8, "<GO>860+43=<GO>0+3=3<STOP><GO>86+4=90<STOP>903<STOP>"),
            (9, "<GO>0+3=3<STOP>"),
            (10, "<GO>86+4=<GO>6+4=10<STOP><GO>8+1=9<STOP>90<STOP>"),
            (11, "<GO>6+4=10<STOP>"),
            (12, "<GO>8+1=9<STOP>"),
        ],
    );
}

#[test]
fn comparison() {
    has_contexts(
        "153 vs 159",
        5,
        &[
            (1, "<GO>153<VS>159=<GO>1<VS>1=<EQ><STOP><GO>53<VS>59=<LT><STOP><LT><STOP>"),
            (2, "<GO>1<VS>1=<EQ><STOP>"),
            (3, "<GO>53<VS>59=<GO>5<VS>5=<EQ><STOP><GO>3<VS>9=<LT><STOP><LT><STOP>"),
            (4, "<GO>5<VS>5=<EQ><STOP>"),
            (5, "<GO>3<VS>9=<LT><STOP>"),
        ],
    );
}

#[test]
fn division() {
    has_contexts(
        "76/29",
        19,
        &[
            (
                1,
                "<GO>76÷29=<GO>76<VS>29=<GT><STOP><GO>76<VS>290=<LT><STOP><GO>76-29=47<STOP>\
                 <GO>47÷29=1<R>18<STOP>2<R>18<STOP>",
            ),
            (2, "<GO>76<VS>29=<GO>7<VS>2=<GT><STOP><GT><STOP>"),
            (3, "<GO>7<VS>2=<GT><STOP>"),
            (4, "<GO>76<VS>290=<LT><STOP>"),
            (5, "<GO>76-29=<GO>16-9=7<STOP><GO>7-1=6<STOP><GO>6-2=4<STOP>47<STOP>"),
            (
                9,
                "<GO>47÷29=<GO>47<VS>29=<GT><STOP><GO>47<VS>290=<LT><STOP><GO>47-29=18<STOP>\
                 <GO>18÷29=0<R>18<STOP>1<R>18<STOP>",
            ),
            (10, "<GO>47<VS>29=<GO>4<VS>2=<GT><STOP><GT><STOP>"),
            (11, "<GO>4<VS>2=<GT><STOP>"),
            (12, "<GO>47<VS>290=<LT><STOP>"),
            (13, "<GO>47-29=<GO>17-9=8<STOP><GO>4-1=3<STOP><GO>3-2=1<STOP>18<STOP>"),
            (17, "<GO>18÷29=<GO>18<VS>29=<LT><STOP>0<R>18<STOP>"),
            (18, "<GO>18<VS>29=<GO>1<VS>2=<LT><STOP><LT><STOP>"),
        ],
    );
}

#[test]
fn longest_common_subsequence() {
    has_contexts(
        "lcs 123 234",
        23,
        &[
            (
                1,
                "<GO>123<LCS>234=<GO><EQUAL>3,4=<FALSE><STOP><GO>12<LCS>234=2;1<STOP>\
                 <GO>123<LCS>23=23;2<STOP><GO>1<VS>2=<LT><STOP>23;2<STOP>",
            ),
            (2, "<GO><EQUAL>3,4=<FALSE><STOP>"),
            (
                3,
                "<GO>12<LCS>234=<GO><EQUAL>2,4=<FALSE><STOP><GO>1<LCS>234=;0<STOP>\
                 <GO>12<LCS>23=2;1<STOP><GO>0<VS>1=<LT><STOP>2;1<STOP>",
            ),
            (21, "<GO>123<LCS>23=<GO><EQUAL>3,3=<TRUE><STOP><GO>12<LCS>2=2;1<STOP>23;2<STOP>"),
            (23, "<GO>1<VS>2=<LT><STOP>"),
        ],
    );
}

/// The paper counts `<EQUAL>1,2`, which is asked twice here, as two contexts: its X10 and X14 are
/// the unique contexts 9 and 13.
#[test]
fn longest_palindromic_subsequence() {
    has_contexts(
        "lps 1232",
        13,
        &[
            (
                1,
                "<GO><LPS>1232=<GO><EQUAL>1,2=<FALSE><STOP><GO><LPS>123=1;1<STOP>\
                 <GO><LPS>232=232;3<STOP><GO>1<VS>3=<LT><STOP>232;3<STOP>",
            ),
            (2, "<GO><EQUAL>1,2=<FALSE><STOP>"),
            (
                3,
                "<GO><LPS>123=<GO><EQUAL>1,3=<FALSE><STOP><GO><LPS>12=1;1<STOP>\
                 <GO><LPS>23=2;1<STOP><GO>1<VS>1=<EQ><STOP>1;1<STOP>",
            ),
            (
                9,
                "<GO><LPS>232=<GO><EQUAL>2,2=<TRUE><STOP><GO><LPS>3=3;1<STOP><GO>1+2=3<STOP>\
                 232;3<STOP>",
            ),
            (13, "<GO>1<VS>3=<LT><STOP>"),
        ],
    );
}

#[test]
fn knapsack() {
    has_contexts(
        "knapsack 3&9,4&2,9&5@10",
        18,
        &[
            (
                1,
                "<GO><KNAPSACK>3&9,4&2,9&5@10=<GO><KNAPSACK>4&2,9&5@10=4&2,9&5$13<STOP>\
                 <GO>9<VS>10=<LT><STOP><GO>10-9=1<STOP><GO><KNAPSACK>4&2,9&5@1=$0<STOP>\
                 <GO>0+3=3<STOP><GO>3<VS>13=<LT><STOP>4&2,9&5$13<STOP>",
            ),
            (
                2,
                "<GO><KNAPSACK>4&2,9&5@10=<GO><KNAPSACK>9&5@10=9&5$9<STOP>\
                 <GO>2<VS>10=<LT><STOP><GO>10-2=8<STOP><GO><KNAPSACK>9&5@8=9&5$9<STOP>\
                 <GO>9+4=13<STOP><GO>13<VS>9=<GT><STOP>4&2,9&5$13<STOP>",
            ),
            (11, "<GO>9<VS>10=<LT><STOP>"),
            (12, "<GO>10-9=1<STOP>"),
            (
                13,
                "<GO><KNAPSACK>4&2,9&5@1=<GO><KNAPSACK>9&5@1=$0<STOP><GO>2<VS>1=<GT><STOP>$0<STOP>",
            ),
            (17, "<GO>0+3=3<STOP>"),
            (18, "<GO>3<VS>13=<LT><STOP>"),
        ],
    );
}

/// Where two ways are equally good the paper leaves the choice open, or its listing settles it.
#[test]
fn ties() {
    for (question, answer) in [
        ("lcs 12 21", "1;1<STOP>"),
        ("lps 12", "1;1<STOP>"),
        ("lps 123", "1;1<STOP>"),
        ("knapsack 3&1,3&2@2", "3&2$3<STOP>"),
        ("mcm 2x2,2x2,2x2", "2×2,(2×2,2×2);16<STOP>"),
    ] {
        assert_eq!(unfold(question).answer, answer, "{question}");
    }
    let asks = |question: &str, thought: &str| unfold(question).contexts[0].0.contains(thought);
    assert!(asks("merge 5,6 5,7", "<GO><MERGE>5,6<SEP>7="));
    // Ten times the divisor is subtracted from, one more is split.
    assert!(asks("100/10", "<GO>100-10="));
    assert!(asks("101/10", "<GO>10÷10="));
}

#[test]
fn matrix_chain_multiplication() {
    has_contexts(
        "mcm 3x9,9x4,4x5",
        56,
        &[
            (
                1,
                "<GO><MCM>3×9,9×4,4×5=<GO><MCM>3×9=3×9;0<STOP><GO><MCM>9×4,4×5=9×4,4×5;180<STOP>\
                 <GO>3*9*5=135<STOP><GO>0+180+135=315<STOP>\
                 <TAIL><MCM>3×9,9×4|4×5<ACC>3×9,(9×4,4×5);315=<THINK>",
            ),
            (
                32,
                "<GO><MCM>3×9,9×4|4×5<ACC>3×9,(9×4,4×5);315=<GO><MCM>3×9,9×4=3×9,9×4;108<STOP>\
                 <GO><MCM>4×5=4×5;0<STOP><GO>3*4*5=60<STOP><GO>108+0+60=168<STOP>\
                 <GO>168<VS>315=<LT><STOP>(3×9,9×4),4×5;168<STOP>",
            ),
        ],
    );
}
