import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Signal } from '../process/signal.ts'
import { Queue, type QueueOptions, type Result } from './coalesce.ts'

type Running = {
  items: string[]
  signal: Signal
  finish(results?: Result<string>[]): void
  fail(error: Error): void
}

/** A queue whose batches the test ends. */
function controlled(options: Partial<QueueOptions<string, string>> = {}) {
  const batches: Running[] = []
  const run = (items: string[], signal: Signal) =>
    new Promise<Result<string>[]>((resolve, reject) => {
      const done = items.map(item => ({ outcome: `${item} done` }))
      const finish = (results: Result<string>[] = done) => resolve(results)
      batches.push({ items, signal, finish, fail: reject })
      signal.addEventListener('abort', () => reject(signal.reason))
    })
  const queue = new Queue<string, string>({ run, itemsLimit: 4, bytesLimit: 100, rollsBackOnAbort: true, ...options })
  return { queue, batches, shape: () => batches.map(({ items }) => items.join(' ')) }
}

const turn = () => new Promise(setImmediate)

describe('items that arrive one by one', () => {
  it('start at once when no batch is in flight, and share the next batch otherwise', async () => {
    const { queue, batches, shape } = controlled()
    const results = ['a', 'b', 'c'].map(item => queue.add({ item }))
    expect(shape()).toEqual(['a'])
    batches[0]!.finish()
    expect(await results[0]).toBe('a done')
    expect(shape()).toEqual(['a', 'b c'])
    batches[1]!.finish()
    expect(await Promise.all(results)).toEqual(['a done', 'b done', 'c done'])
    expect(queue.idle).toBe(true)
  })

  it('start a second batch beside the one in flight once enough items wait, and never a third', async () => {
    const { queue, batches, shape } = controlled({ secondFrom: 2 })
    const answers = ['a', 'b', 'c', 'd', 'e', 'f'].map(item => queue.add({ item }))
    expect(shape()).toEqual(['a', 'b c'])
    batches[1]!.finish()
    expect(await answers[2]).toBe('c done')
    expect(shape()).toEqual(['a', 'b c', 'd e f'])
    batches[0]!.finish()
    batches[2]!.finish()
    expect(await Promise.all(answers)).toHaveLength(6)
    expect(queue.idle).toBe(true)
  })

  it('settle after the next batch has started', async () => {
    const { queue, batches, shape } = controlled()
    const seen: string[] = []
    void queue.add({ item: 'a' }).then(() => seen.push(...shape()))
    void queue.add({ item: 'b' })
    batches[0]!.finish()
    await turn()
    expect(seen).toEqual(['a', 'b'])
  })

  it('settle a few per event-loop turn; an item that aborts before its turn keeps its result', async () => {
    const { queue, batches, shape } = controlled({ maxSettledPerTurn: 1 })
    const controller = new AbortController()
    const settledOutcomes: string[] = []
    const add = (item: string, signal?: AbortSignal) =>
      void queue.add({ item, signal }).then(outcome => settledOutcomes.push(outcome))
    add('first')
    add('a')
    add('b', controller.signal)
    batches[0]!.finish()
    await turn()
    batches[1]!.finish()
    await turn()
    expect(settledOutcomes).toEqual(['first done', 'a done'])
    controller.abort()
    await turn()
    expect(settledOutcomes).toEqual(['first done', 'a done', 'b done'])
    expect(shape()).toEqual(['first', 'a b'])
    expect(queue.idle).toBe(true)
  })

  it('never exceed the limits of a batch, and a large item runs alone', async () => {
    const { queue, batches, shape } = controlled()
    const sizes = [1, 60, 40, 1, 200, 1, 1, 1, 1, 1]
    for (const [index, bytes] of sizes.entries()) void queue.add({ item: `${index}`, bytes })
    for (let index = 0; index < batches.length; index += 1) {
      batches[index]!.finish()
      await turn()
    }
    expect(shape()).toEqual(['0', '1 2', '3', '4', '5 6 7 8', '9'])
  })

  it('count as many as they say', async () => {
    const { queue, batches, shape } = controlled()
    for (const [index, count] of [1, 2, 2, 9, 1].entries()) void queue.add({ item: `${index}`, count })
    for (let index = 0; index < batches.length; index += 1) {
      batches[index]!.finish()
      await turn()
    }
    expect(shape()).toEqual(['0', '1 2', '3', '4'])
  })
})

describe('a batch that fails', () => {
  it('runs again in halves, down to the faulty item, and the next batch does not wait', async () => {
    const { queue, batches, shape } = controlled()
    const answers = ['first', 'a', 'b', 'bad', 'c'].map(item => queue.add({ item }).catch(String))
    batches[0]!.finish()
    await turn()
    const later = queue.add({ item: 'later' })
    for (let index = 1; index < batches.length; index += 1) {
      const { items, fail, finish } = batches[index]!
      if (items.includes('bad') && index < 6) fail(new Error('culprit'))
      else finish()
      await turn()
    }
    expect(shape()).toEqual(['first', 'a b bad c', 'a b', 'bad c', 'later', 'bad', 'c'])
    expect(await Promise.all(answers)).toEqual(['first done', 'a done', 'b done', 'Error: culprit', 'c done'])
    expect(await later).toBe('later done')
  })

  it('rejects items that must not run again, and retries the others', async () => {
    const { queue, batches, shape } = controlled()
    const answers = ['first', 'lost', 'locked'].map(item => queue.add({ item }).catch(String))
    batches[0]!.finish()
    await turn()
    batches[1]!.finish([
      { error: new Error('lost'), again: false },
      { error: new Error('locked'), again: true },
    ])
    await turn()
    batches[2]!.finish([{ error: new Error('locked'), again: true }])
    await turn()
    batches[3]!.finish()
    expect(await Promise.all(answers)).toEqual(['first done', 'Error: lost', 'locked done'])
    expect(shape()).toEqual(['first', 'lost locked', 'locked', 'locked'])
  })
})

describe('an item whose signal aborts', () => {
  const reason = new Error('the time is over')

  it('leaves the queue while it waits', async () => {
    const { queue, batches, shape } = controlled()
    const controller = new AbortController()
    void queue.add({ item: 'first' })
    const waiting = queue.add({ item: 'x1', signal: controller.signal })
    const behind = queue.add({ item: 'x2' })
    controller.abort(reason)
    await expect(waiting).rejects.toBe(reason)
    await expect(queue.add({ item: 'late', signal: controller.signal })).rejects.toBe(reason)
    batches[0]!.finish()
    await turn()
    batches[1]!.finish()
    expect(await behind).toBe('x2 done')
    expect(shape()).toEqual(['first', 'x2'])
    expect(queue.idle).toBe(true)
  })

  it('cancels its batch, which runs again without it', async () => {
    const { queue, batches, shape } = controlled()
    const controller = new AbortController()
    void queue.add({ item: 'first' })
    const aborted = queue.add({ item: 'a', signal: controller.signal })
    const neighbour = queue.add({ item: 'b' })
    batches[0]!.finish()
    await turn()
    controller.abort(reason)
    await expect(aborted).rejects.toBe(reason)
    await turn()
    batches[2]!.finish()
    expect(await neighbour).toBe('b done')
    expect(shape()).toEqual(['first', 'a b', 'b'])
  })

  it('does not cancel a batch of reads until all of its items have aborted', async () => {
    const { queue, batches, shape } = controlled({ rollsBackOnAbort: false })
    const [one, other] = [new AbortController(), new AbortController()]
    void queue.add({ item: 'first' })
    const left = queue.add({ item: 'a', signal: one.signal })
    const stayed = queue.add({ item: 'b', signal: other.signal })
    batches[0]!.finish()
    await turn()
    one.abort(reason)
    await expect(left).rejects.toBe(reason)
    expect(batches[1]!.signal.aborted).toBe(false)
    other.abort(reason)
    await expect(stayed).rejects.toBe(reason)
    expect(batches[1]!.signal.aborted).toBe(true)
    expect(shape()).toEqual(['first', 'a b'])
  })
})

it('runs each item once or rejects it under random failures and aborts', async () => {
  const arrival = fc.record({
    aborts_after: fc.option(fc.nat(6), { nil: undefined }),
    turns: fc.nat(2),
  })
  const arrivalsOf = fc.array(arrival, { minLength: 1, maxLength: 24 })
  const failures = fc.array(fc.boolean(), { minLength: 40, maxLength: 40 })
  await fc.assert(
    fc.asyncProperty(arrivalsOf, failures, fc.constantFrom(undefined, 2), async (arrivals, fails, secondFrom) => {
      const done: number[] = []
      const inFlight = new Set<unknown>()
      let runs = 0
      const run = async (items: number[], signal: Signal): Promise<Result<number>[]> => {
        const failsNow = fails[runs++ % fails.length]!
        for (const item of items) {
          expect(inFlight.has(item)).toBe(false)
          inFlight.add(item)
        }
        await turn()
        await turn()
        for (const item of items) inFlight.delete(item)
        if (signal.aborted) throw signal.reason
        if (failsNow) return items.map(() => ({ error: new Error('failed'), again: items.length > 1 }))
        done.push(...items)
        return items.map(item => ({ outcome: item }))
      }
      const queue = new Queue<number, number>({
        run,
        secondFrom,
        itemsLimit: 5,
        bytesLimit: 1_000,
        rollsBackOnAbort: true,
      })
      const answers: Promise<PromiseSettledResult<number>[]>[] = []
      for (const [item, { aborts_after: abortsAfter, turns }] of arrivals.entries()) {
        const controller = new AbortController()
        const { signal } = controller
        answers.push(Promise.allSettled([queue.add({ item, signal })]))
        if (abortsAfter !== undefined) void abortAfter(controller, abortsAfter)
        for (let index = 0; index < turns; index += 1) await turn()
      }
      const settled = (await Promise.all(answers)).flat()
      const answered = settled.flatMap(result => (result.status === 'fulfilled' ? [result.value] : []))
      expect(done.toSorted((a, b) => a - b)).toEqual(answered.toSorted((a, b) => a - b))
      await turn()
      expect(queue.idle).toBe(true)
    }),
    { numRuns: 200 },
  )
})

async function abortAfter(controller: AbortController, turns: number) {
  for (let index = 0; index < turns; index += 1) await turn()
  controller.abort(new Error('aborted'))
}
