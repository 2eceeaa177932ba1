/**
 * Has work done for one after the other, in order: from the end of the turn of the event loop in which they came, for
 * `least` of them in a turn, or for an eighth of those who wait. Whoever else the loop serves waits for no more than that.
 */
export function batchScheduler<Waiting>(least: number, work: (waiting: Waiting) => void): (waiting: Waiting) => void {
  const queue: Waiting[] = []
  const turn = () => {
    try {
      for (let left = Math.min(queue.length, Math.max(least, queue.length >> 3)); left > 0; left -= 1)
        work(queue.shift()!)
    } finally {
      // Where one of them throws, the others have their turn all the same.
      if (queue.length > 0) setImmediate(turn)
    }
  }
  return waiting => {
    if (queue.push(waiting) === 1) setImmediate(turn)
  }
}
