//! Tests of the mailbox kernel on the emulated device, with separate launches for sender and receiver.

use nestar_device::{LAUNCH, program};
use nestar_engine_device::{Buffer, Device, DeviceKind, Kernel, LaunchShape};
use nestar_kernels::mailbox::{
    MAILBOX, MAX_ENTRIES, MailboxEntry, MailboxExchange, SLOT, SLOTS, items,
};

const MEMORY: usize = 2 << 20;

/// Device, memory of both ranks, and the slots and sequence numbers between them.
struct Pair {
    device: Device,
    kernel: Kernel,
    from: Buffer<u8>,
    to: Buffer<u8>,
    slots: Buffer<u8>,
    words: Buffer<u64>,
    abort_flag: Buffer<u32>,
    /// Number of parts so far.
    parts: u64,
}

impl Pair {
    fn new() -> Self {
        let device = Device::open(DeviceKind::Emulated).unwrap();
        let source = [&program(&items()), LAUNCH, MAILBOX].concat();
        let module = device.compile("mailbox", &source).unwrap();
        let zeros = |bytes| device.buffer(bytes).unwrap();
        let words = device.buffer(2 * SLOTS as usize).unwrap();
        device.fill_zero(&words, 0..2 * SLOTS as usize).unwrap();
        let abort_flag = device.buffer(1).unwrap();
        device.fill_zero(&abort_flag, 0..1).unwrap();
        let (from, to) = (zeros(MEMORY), zeros(MEMORY));
        device.upload(&from, 0, &content()).unwrap();
        device.fill_zero(&to, 0..MEMORY).unwrap();
        Self {
            kernel: module.kernel("mailbox_exchange").unwrap(),
            slots: zeros((SLOT * SLOTS) as usize),
            from,
            to,
            words,
            abort_flag,
            parts: 0,
            device,
        }
    }

    /// Launches one side of an exchange of segments, given by start and end.
    fn pass(&self, segments: &[(usize, usize)], sends: bool) {
        let memory = if sends { &self.from } else { &self.to }.address();
        let mut pass = MailboxExchange {
            entries: [MailboxEntry::default(); MAX_ENTRIES],
            count: segments.len() as i32,
            sends: if sends { segments.len() as i32 } else { 0 },
            abort_flag: self.abort_flag.address().into(),
        };
        let mut block = 0;
        for (entry, (first, end)) in pass.entries.iter_mut().zip(segments) {
            *entry = MailboxEntry {
                memory: (memory + *first as u64).into(),
                slots: self.slots.address().into(),
                written_numbers: self.words.address().into(),
                read_numbers: (self.words.address() + 8 * SLOTS as u64).into(),
                number: self.parts + block as u64,
                bytes: (end - first) as i64,
                block: block as i32,
            };
            block += (end - first).div_ceil(SLOT as usize);
        }
        let shape = LaunchShape::of(block, 256);
        self.device.launch(&self.kernel, shape, &pass).unwrap();
    }

    fn parts(segments: &[(usize, usize)]) -> u64 {
        let parts = |(first, end): &(usize, usize)| (end - first).div_ceil(SLOT as usize) as u64;
        segments.iter().map(parts).sum()
    }
}

fn content() -> Vec<u8> {
    (0..MEMORY).map(|n| (n * 37 + (n >> 9)) as u8).collect()
}

#[test]
fn parts_of_any_size_and_alignment_arrive_and_slots_are_reused() {
    let (mut pair, slot) = (Pair::new(), SLOT as usize);
    let rounds = [
        vec![
            (0, 1),
            (3, 10),
            (16, 16 + slot),
            (4 * slot + 4, 6 * slot + 9),
        ],
        vec![
            (slot + 32, slot + 32 + 17 * slot + 3),
            (19 * slot, 19 * slot + 5),
        ],
        vec![(30 * slot + 1, 126 * slot - 2)],
        vec![(20 * slot, 29 * slot)],
    ];
    let (content, mut expected) = (content(), vec![0; MEMORY]);
    for round in &rounds {
        pair.pass(round, true);
        pair.pass(round, false);
        pair.parts += Pair::parts(round);
        for (first, end) in round {
            expected[*first..*end].copy_from_slice(&content[*first..*end]);
        }
    }
    assert!(pair.parts > SLOTS as u64, "slots are not used again");
    let mut found = vec![0; MEMORY];
    pair.device.download(&pair.to, 0, &mut found).unwrap();
    assert!(found == expected);
}

#[test]
fn kernels_stop_waiting_after_an_abort() {
    let pair = Pair::new();
    pair.device.upload(&pair.abort_flag, 0, &[1]).unwrap();
    pair.pass(&[(0, 100)], false);
    let mut found = vec![7; 100];
    pair.device.download(&pair.to, 0, &mut found).unwrap();
    assert_eq!(found, vec![0; 100]);
    let mut words = vec![7; 2 * SLOTS as usize];
    pair.device.download(&pair.words, 0, &mut words).unwrap();
    assert_eq!(words, vec![0; 2 * SLOTS as usize]);
}
