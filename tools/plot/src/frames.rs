//! Figures of one or several panels, and series of figures with common colours.

use crate::colour::Extent;
use crate::curve::Curve;
use crate::error::{PlotError, Result};
use crate::figure::FigureLayout;
use crate::phase::{Phase, Ranges};
use crate::picture::Picture;
use crate::shapes::Drawing;
use crate::{CustomField, Format, PlotKind, PlotOptions};
use nestar_snapshot::Snapshot;
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of pictures that are kept in memory until the range of the colours of all frames is known; others are computed twice.
const KEPT_BYTES: usize = 1 << 30;

/// Contents of a panel.
enum Subject {
    Picture(Box<Picture>),
    Curve(Curve),
    Phase(Phase),
}

/// A figure before its colours are known.
pub(crate) struct Figure {
    panels: Vec<(PlotOptions, Subject)>,
    columns: usize,
}

impl Subject {
    /// Computes the contents of a panel; `ranges` are those of the axes of a phase diagram, if they are given.
    fn new(
        snapshot: &Snapshot,
        options: &PlotOptions,
        custom: &[CustomField],
        layout: &FigureLayout,
        ranges: Option<Ranges>,
    ) -> Result<Self> {
        check(options)?;
        if let Some(curve) = Curve::new(snapshot, options, custom) {
            return Ok(Self::Curve(curve?));
        }
        match options.kind {
            PlotKind::Phase => {
                let phase = Phase::new(snapshot, options, custom, ranges)?;
                Ok(Self::Phase(phase))
            }
            _ => {
                let picture = Picture::new(snapshot, options, custom, layout)?;
                Ok(Self::Picture(Box::new(picture)))
            }
        }
    }

    fn extent(&self) -> Extent {
        match self {
            Self::Picture(picture) => picture.extent(),
            Self::Curve(curve) => curve.extent(),
            Self::Phase(phase) => phase.extent(),
        }
    }

    fn draw(
        &self,
        snapshot: &Snapshot,
        options: &PlotOptions,
        extent: &Extent,
        layout: &FigureLayout,
    ) -> Result<Drawing> {
        match self {
            Self::Picture(picture) => picture.draw(snapshot, options, extent, layout),
            Self::Curve(curve) => curve.draw(snapshot, options, extent, layout),
            Self::Phase(phase) => phase.draw(snapshot, options, extent, layout),
        }
    }
}

/// Refuses options that another kind of plot has.
fn check(options: &PlotOptions) -> Result<()> {
    let has_bins = matches!(options.kind, PlotKind::Profile(_) | PlotKind::Phase);
    let refuse = |text: &str| Err(PlotError::Option(text.to_string()));
    if options.bins.is_some() && !has_bins {
        return refuse("--bins: needs --profile or --phase");
    }
    if options.weight.is_some() && matches!(options.kind, PlotKind::Line(_)) {
        return refuse("--weight: needs --projection, --profile or --phase");
    }
    if options.kind.is_picture() {
        return match options.log_axes {
            [false, false] => Ok(()),
            _ => refuse("--log-x: needs --profile, --line or --phase"),
        };
    }
    let given = [
        ("--normal", options.normal.is_some()),
        ("--contours", options.contours.is_some()),
        ("--arrows", options.arrows.is_some()),
        ("--streamlines", options.streamlines.is_some()),
        ("--outlines", options.outlines),
        ("--particles", !options.particles.is_empty()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(PlotError::Option(format!(
            "{option}: needs a slice, projection or maximum; leave it out"
        ))),
        None => Ok(()),
    }
}

impl Figure {
    /// Computes the panels of a figure; `ranges` are those of the axes of a phase diagram, if they are given.
    pub fn new(
        snapshot: &Snapshot,
        panels: &[PlotOptions],
        custom: &[CustomField],
        ranges: &[Option<Ranges>],
    ) -> Result<Self> {
        let width = panels.first().map_or(0, |options| options.width_px);
        if !(200..=8192).contains(&width) {
            return Err(PlotError::Option(format!(
                "width {width}: must be 200 to 8192 pixels"
            )));
        }
        // as many columns as rows, or one more
        let columns = (1..).find(|n| n * n >= panels.len()).unwrap_or(1);
        let columns = if panels.len() == 3 { 3 } else { columns };
        let each = width / columns as u32;
        if each < 200 {
            let text = format!(
                "width {width}: {columns} panels side by side need {} pixels",
                columns * 200
            );
            return Err(PlotError::Option(text));
        }
        let layout = FigureLayout::new(each as usize)?;
        let panel = |(number, options): (usize, &PlotOptions)| {
            let options = PlotOptions {
                width_px: each,
                ..options.clone()
            };
            let subject = Subject::new(
                snapshot,
                &options,
                custom,
                &layout,
                ranges.get(number).copied().flatten(),
            )?;
            Ok((options, subject))
        };
        let panels = panels.iter().enumerate().map(panel);
        let panels = panels.collect::<Result<_>>()?;
        Ok(Self { panels, columns })
    }

    /// Returns the range of the values of each panel.
    pub fn extents(&self) -> Vec<Extent> {
        self.panels
            .iter()
            .map(|(_, subject)| subject.extent())
            .collect()
    }

    /// Returns the bytes that the panels hold.
    fn bytes(&self) -> usize {
        let bytes = |subject: &Subject| match subject {
            Subject::Picture(picture) => picture.bytes(),
            Subject::Phase(phase) => size_of_val(&phase.sums[..]),
            Subject::Curve(curve) => size_of_val(&curve.points[..]),
        };
        self.panels.iter().map(|(_, subject)| bytes(subject)).sum()
    }

    /// Draws the figure with these ranges of values, and returns the bytes of the file.
    pub fn draw(&self, snapshot: &Snapshot, extents: &[Extent]) -> Result<Vec<u8>> {
        let mut drawings = vec![];
        for ((options, subject), extent) in self.panels.iter().zip(extents) {
            let layout = FigureLayout::new(options.width_px as usize)?;
            drawings.push(subject.draw(snapshot, options, extent, &layout)?);
        }
        let mut all = Drawing::new(0, 0);
        let mut drawings = drawings.into_iter().peekable();
        while drawings.peek().is_some() {
            let row: Vec<Drawing> = drawings.by_ref().take(self.columns).collect();
            let (mut right, down) = (0, all.height);
            for drawing in row {
                all.height = all.height.max(down + drawing.height);
                let width = drawing.width;
                all.append(drawing, right, down);
                right += width;
            }
            all.width = all.width.max(right);
        }
        match self.panels.first().map(|(options, _)| options.format) {
            Some(Format::Svg) => all.svg(),
            _ => all.png(),
        }
    }
}

/// Plots the same panels of several snapshots, with one range of colours per panel, and passes the bytes of each file to `write`, with the
/// number of the snapshot in the list; several at a time.
///
/// # Errors
/// Returns the errors of [`crate::plot`] and those of `write`.
pub fn plot_frames(
    snapshots: &[Snapshot],
    panels: &[PlotOptions],
    custom: &[CustomField],
    write: impl Fn(usize, Vec<u8>) -> Result<()> + Sync,
) -> Result<()> {
    let ranges = common_ranges(snapshots, panels, custom)?;
    let kept_bytes = AtomicUsize::new(0);
    let first = |snapshot: &Snapshot| -> Result<(Vec<Extent>, Option<Figure>)> {
        let figure = Figure::new(snapshot, panels, custom, &ranges)?;
        let bytes = figure.bytes();
        let kept = kept_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= KEPT_BYTES;
        Ok((figure.extents(), kept.then_some(figure)))
    };
    let frames: Vec<_> = snapshots.par_iter().map(first).collect::<Result<_>>()?;
    let mut extents = vec![Extent::default(); panels.len()];
    for (own, _) in &frames {
        for (extent, own) in extents.iter_mut().zip(own) {
            *extent = extent.join(*own);
        }
    }
    let numbered = snapshots.par_iter().zip(frames).enumerate();
    numbered.try_for_each(|(number, (snapshot, (_, figure)))| {
        let figure = match figure {
            Some(figure) => figure,
            None => Figure::new(snapshot, panels, custom, &ranges)?,
        };
        write(number, figure.draw(snapshot, &extents)?)
    })
}

/// Returns the ranges of the axes of each panel that is a phase diagram, which contain the values of all snapshots.
fn common_ranges(
    snapshots: &[Snapshot],
    panels: &[PlotOptions],
    custom: &[CustomField],
) -> Result<Vec<Option<Ranges>>> {
    let join = |a: Ranges, b: Ranges| -> Ranges {
        std::array::from_fn(|i| [a[i][0].min(b[i][0]), a[i][1].max(b[i][1])])
    };
    let common = |options: &PlotOptions| match options.kind {
        PlotKind::Phase => {
            let ranges = snapshots.par_iter();
            let ranges = ranges.map(|snapshot| Phase::ranges(snapshot, options, custom));
            let ranges = ranges.collect::<Result<Vec<Ranges>>>()?;
            Ok(ranges.into_iter().reduce(join))
        }
        _ => Ok(None),
    };
    panels.iter().map(common).collect()
}
