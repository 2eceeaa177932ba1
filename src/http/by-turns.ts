/**
 * Has work done for one after the other, in order, and in a turn of the event loop for `least` of them, or for a quarter of
 * those who wait: whoever else it serves waits for no more than that.
 */
export function byTurns<Waiting>(least: number, work: (waiting: Waiting) => void): (waiting: Waiting) => void {
  const queue: Waiting[] = []
  const take = () => {
    const taken = queue.splice(0, Math.max(least, queue.length / 4))
    if (queue.length > 0) setImmediate(take)
    for (const waiting of taken) work(waiting)
  }
  return waiting => {
    if (queue.push(waiting) === 1) setImmediate(take)
  }
}
