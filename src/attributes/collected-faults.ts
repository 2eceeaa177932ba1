import { Fault, type Refusal } from '../values/errors.ts'

const maxDetails = 100

/** Collects the refusals of the elements of a request, so that one response names what is wrong with all of them. */
export class CollectedFaults {
  readonly #refusals: Refusal[] = []

  /** Returns the result of the check of the element at `path`. Undefined if it throws a Fault. */
  collect<R>(path: string, check: () => R): R | undefined {
    try {
      return check()
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      const details = error.refusal.details.map(detail => ({ ...detail, path: path + detail.path }))
      this.#refusals.push({ ...error.refusal, details })
      return undefined
    }
  }

  /** Throws the first refusal, with the details of all that have its code, at most 100. */
  throwIfAny(): void {
    const [first] = this.#refusals
    if (!first) return
    const details = this.#refusals.filter(({ code }) => code === first.code).flatMap(refusal => refusal.details)
    throw new Fault({ ...first, details: details.slice(0, maxDetails) })
  }
}
