import { segmentFollower } from '../../src/segments/segment-follower.ts'
import { follow } from './followers.ts'
import type { Organization, Reply, Service } from './service.ts'

let hoursLater = 0

/** Lets the follower compute the segments of all organizations up to the newest change. */
export async function followSegments({ db }: Pick<Service, 'db'>): Promise<void> {
  hoursLater += 1
  const nowMs = () => Date.now() + hoursLater * 3_600_000
  await follow(db, [{ ...segmentFollower({ nowMs }), maxConcurrent: 1_000 }], { nowMs })
}

/** The ids of the people of a segment now, in order. Reads pages of `size`. Throws if a page is refused. */
export async function readSegmentPeople(
  { send }: Pick<Organization, 'send'>,
  key: string,
  size = 500,
): Promise<string[]> {
  const ids: string[] = []
  for (let after = ''; ; ) {
    const { status, body } = await send('GET', `/v1/segments/${key}/people?size=${size}&sort_direction=asc${after}`)
    if (status !== 200) throw new Error(JSON.stringify(body))
    ids.push(...body.data.items.map((person: { id: string }) => person.id))
    if (!body.data.has_more) return ids
    after = `&after_id=${ids.at(-1)}`
  }
}

type SegmentPeople = { key: string; people: string[] }
export type SegmentChange = {
  sequence: number
  subject: string
  id: string
  operation: string
  segments: { entered: SegmentPeople[]; left: SegmentPeople[] }
}

/** A client that keeps the people of a segment by its feed. It begins anew when the feed does. */
export class SegmentMirror {
  readonly key: string
  readonly #organization: Pick<Organization, 'send'>
  readonly people = new Set<string>()
  restarts = 0
  #after: number | undefined

  constructor(organization: Pick<Organization, 'send'>, key: string) {
    this.#organization = organization
    this.key = key
  }

  /** Reads what the feed tells since the last call. */
  async follow(): Promise<void> {
    for (;;) {
      if (this.#after === undefined && !(await this.#begin())) return
      const { status, body } = await this.#read(this.#after!)
      if (status === 503) return
      if (status === 410) {
        this.#after = undefined
        this.restarts += 1
        continue
      }
      if (status !== 200) throw new Error(JSON.stringify(body))
      for (const { segments } of body.data.items as SegmentChange[]) this.#apply(segments)
      this.#after = body.data.last
      if (body.data.last >= body.data.head) return
    }
  }

  #apply({ entered, left }: SegmentChange['segments']): void {
    for (const { people } of left) for (const id of people) this.people.delete(id)
    for (const { people } of entered) for (const id of people) this.people.add(id)
  }

  /** Reads the members, and the position of the first page. The feed reports all others from there on. */
  async #begin(): Promise<boolean> {
    this.people.clear()
    let position: number | undefined
    for (let after = ''; ; ) {
      const { status, body } = await this.#organization.send('GET', `/v1/segments/${this.key}/members?size=4${after}`)
      if (status === 503) return false
      if (status !== 200) throw new Error(JSON.stringify(body))
      const { people, has_more, head } = body.data
      position ??= head
      for (const id of people) this.people.add(id)
      if (!has_more) break
      after = `&after_id=${people.at(-1)}`
    }
    this.#after = position
    return true
  }

  #read(after: number): Promise<Reply> {
    return this.#organization.send('GET', `/v1/changes?segment=${this.key}&after=${after}&limit=3`)
  }
}
