import { yieldIfDue } from './event-loop.ts'

/** The JSON of a list whose elements are made one after the other. A long list is printed over several turns of the event loop. */
export async function listToJson<T>(
  values: readonly T[],
  elementOf: (value: T, index: number) => object,
): Promise<string> {
  const elements: string[] = []
  for (const [index, value] of values.entries()) {
    await yieldIfDue()
    elements.push(JSON.stringify(elementOf(value, index)))
  }
  return `[${elements.join()}]`
}
