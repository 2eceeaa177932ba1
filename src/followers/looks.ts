/**
 * The interval between two looks, which all organizations share. A look takes as long as one or two writes, and causes
 * further work of the search index. With a look every 25 ms, a client that writes people one after the other paid a
 * tenth of each write for it.
 */
const intervalMs = 100
/** After a look without findings, the next look of the organization waits at least this long. */
const quietMs = 1_000
const maxPerLook = 1_000

/**
 * The next look of an organization. With `isRepeated`, another look follows if this one finds nothing, because it does
 * not see working or pausing followers. A resting look is not moved to an earlier time.
 */
type Planned = { slot: number; isRepeated: boolean; isResting: boolean }

/**
 * Looks for news of organizations. All organizations share one look in 100 ms. Organizations without findings are
 * looked at less often.
 */
export class Looks {
  readonly #look: (organizationIds: number[]) => Promise<ReadonlySet<number>>
  readonly #report: (error: unknown) => void
  readonly #planned = new Map<number, Planned>()
  readonly #slots = new Map<number, { timer: NodeJS.Timeout; looks: [organizationId: number, Planned][] }>()
  #running = Promise.resolve()
  #isStopped = false

  /** `look` returns the organizations with findings. */
  constructor(look: (organizationIds: number[]) => Promise<ReadonlySet<number>>, report: (error: unknown) => void) {
    this.#look = look
    this.#report = report
  }

  /** Schedules an early look, because changes of the organization were committed. */
  afterCommit(organizationId: number): void {
    this.#plan(organizationId, 0, { isRepeated: true, isResting: false })
  }

  /** Schedules a later look, because looks do not see a follower while it works or pauses. */
  afterWork(organizationId: number): void {
    this.#plan(organizationId, quietMs, { isRepeated: false, isResting: false })
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    for (const { timer } of this.#slots.values()) clearTimeout(timer)
    await this.#running
  }

  #plan(organizationId: number, delayMs: number, kind: Omit<Planned, 'slot'>) {
    if (this.#isStopped) return
    const slot = Math.floor((performance.now() + delayMs) / intervalMs) + 1
    const planned = this.#planned.get(organizationId)
    if (planned && (planned.isResting || planned.slot <= slot)) {
      planned.isRepeated ||= kind.isRepeated
      return
    }
    const look = { slot, ...kind }
    this.#planned.set(organizationId, look)
    const existing = this.#slots.get(slot)
    if (existing) existing.looks.push([organizationId, look])
    else this.#slots.set(slot, { timer: this.#startTimer(slot), looks: [[organizationId, look]] })
  }

  #startTimer(slot: number): NodeJS.Timeout {
    const run = () => {
      this.#running = this.#running.then(() => this.#run(slot))
    }
    return setTimeout(run, slot * intervalMs - performance.now()).unref()
  }

  async #run(slot: number) {
    // An organization may have been moved to an earlier slot.
    const looks = this.#slots.get(slot)!.looks.filter(([id, look]) => this.#planned.get(id) === look)
    this.#slots.delete(slot)
    for (const [id] of looks) this.#planned.delete(id)
    for (let first = 0; first < looks.length && !this.#isStopped; first += maxPerLook)
      await this.#lookAt(looks.slice(first, first + maxPerLook))
  }

  async #lookAt(looks: readonly [number, Planned][]) {
    const found = await this.#look(looks.map(([id]) => id)).catch(error => {
      this.#report(error)
      return new Set<number>()
    })
    for (const [id, { isRepeated }] of looks)
      if (isRepeated && !found.has(id)) this.#plan(id, quietMs, { isRepeated: false, isResting: true })
  }
}
