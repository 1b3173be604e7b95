// Pointers on the map: one drags it, draws a lasso or chooses a dot; two spread or pinch it.

const STILL = 4; // pixels that a pointer may move and still mean the dot that it is at

const away = ([ax, ay], [bx, by]) => Math.hypot(ax - bx, ay - by);
const middle = ([ax, ay], [bx, by]) => [(ax + bx) / 2, (ay + by) / 2];

// `does`: what each gesture leads to. Places are in pixels of the canvas.
export function gestures(canvas, does) {
  const down = new Map(); // where the pointers are that touch the map
  let drag = null; // {at, view, moved, drawn: the lasso, if it is one}
  let pinch = null; // {at: where both were, view}

  const spot = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const begin = (at, moved, drawn = null) => (drag = { at, view: { ...does.view() }, moved, drawn });

  canvas.addEventListener("pointerdown", (event) => {
    const here = spot(event);
    down.set(event.pointerId, here);
    canvas.setPointerCapture(event.pointerId);
    if (down.size === 1) return begin(here, false, does.lassoes() || event.shiftKey ? [here] : null);
    if (drag?.drawn) does.draw([]);
    drag = null;
    pinch = down.size === 2 ? { at: [...down.values()], view: { ...does.view() } } : null;
  });

  canvas.addEventListener("pointermove", (event) => {
    const here = spot(event);
    if (down.has(event.pointerId)) down.set(event.pointerId, here);
    if (pinch) {
      const now = [...down.values()];
      const factor = away(...now) / Math.max(1, away(...pinch.at));
      return does.carry(pinch.view, middle(...pinch.at), middle(...now), factor);
    }
    if (!drag || !event.buttons) return does.hover(here);
    drag.moved ||= away(here, drag.at) > STILL;
    if (!drag.drawn) return does.carry(drag.view, drag.at, here);
    drag.drawn.push(here);
    does.draw(drag.drawn);
  });

  canvas.addEventListener("pointerup", (event) => {
    const done = drag;
    lift(event);
    if (!done) return;
    if (done.drawn && done.moved && done.drawn.length > 2) return does.select(done.drawn);
    if (!done.moved) does.click(spot(event));
  });
  canvas.addEventListener("pointercancel", (event) => lift(event));

  // The finger that stays after a pinch goes on dragging; lifted, it chooses nothing.
  function lift(event) {
    down.delete(event.pointerId);
    if (drag?.drawn) does.draw([]);
    drag = null;
    pinch = null;
    if (down.size === 1) begin([...down.values()][0], true);
  }

  canvas.addEventListener("pointerleave", () => drag || does.leave());
  canvas.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      does.wheel(event.deltaY < 0, spot(event));
    },
    { passive: false },
  );
}
