import { setTimeout } from 'node:timers/promises'
import { ageOf } from './age.ts'

/** Work that is done in turns with pauses between, however many ask for it. */
export type Turns = {
  /** Settles with the turn that is under way, else with the next. Rejects as the work does. */
  run(): Promise<void>
  /** Settles once `enough` holds, and no later than a turn that began after this was asked: earlier ones miss news. */
  runUntil(enough: () => boolean): Promise<void>
}

/** Turns of `work` that begin at least `pause_ms` apart. */
export function createTurns(work: () => Promise<void>, pause_ms: number, now_ms: () => number): Turns {
  let begun_at_ms = Number.NEGATIVE_INFINITY
  let begun = 0
  let completed = 0
  let running: Promise<void> | undefined

  async function takeTurn() {
    // Never none: all who come in one turn of the event loop share it.
    await setTimeout(Math.max(0, pause_ms - ageOf(begun_at_ms, now_ms())))
    begun_at_ms = now_ms()
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
