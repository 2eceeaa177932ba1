/**
 * Returns a function that queues an item for `work`. Items run in order of arrival, from the end of the event-loop turn
 * in which they arrive. A turn runs `minPerTurn` items, or an eighth of the queue if that is more, so that the other
 * work of the event loop waits for no more than that.
 */
export function createBatchScheduler<Item>(minPerTurn: number, work: (item: Item) => void): (item: Item) => void {
  const queue: Item[] = []
  const runBatch = () => {
    try {
      for (let left = Math.min(queue.length, Math.max(minPerTurn, queue.length >> 3)); left > 0; left -= 1)
        work(queue.shift()!)
    } finally {
      // An item that throws does not keep the others from running.
      if (queue.length > 0) setImmediate(runBatch)
    }
  }
  return item => {
    if (queue.push(item) === 1) setImmediate(runBatch)
  }
}
