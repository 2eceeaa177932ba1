import { setTimeout } from 'node:timers/promises'
import { ageOf } from './age-of.ts'

/** Work that is done in turns with pauses between, however many ask for it. */
export type Turns = {
  /** Settles with the turn that is under way, else with the next. Rejects as the work does. */
  run(): Promise<void>
  /** Settles once `enough` holds, and no later than a turn that began after this was asked: earlier ones miss news. */
  runUntil(enough: () => boolean): Promise<void>
}

/** Turns of `work` that begin at least `pauseMs` apart. */
export function createTurns(work: () => Promise<void>, pauseMs: number, nowMs: () => number): Turns {
  let begunAtMs = Number.NEGATIVE_INFINITY
  let begun = 0
  let completed = 0
  let running: Promise<void> | undefined

  async function takeTurn() {
    // Never none: all who come in one turn of the event loop share it.
    await setTimeout(Math.max(0, pauseMs - ageOf(begunAtMs, nowMs())))
    begunAtMs = nowMs()
    const number = ++begun
    await work()
    completed = number
  }

  function run(): Promise<void> {
    running ??= takeTurn().finally(() => {
      running = undefined
    })
    return running
  }

  return {
    run,
    runUntil: async enough => {
      const before = begun
      do await run()
      while (!enough() && completed <= before)
    },
  }
}
