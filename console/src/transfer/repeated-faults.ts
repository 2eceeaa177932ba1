import { nameOfPath, type RefusedLine } from './refused-lines.ts'

/** A cell that several lines were refused for: the index of its column, and one of the refusals. */
export type RepeatedFault = { column: number; cell: string; count: number; message: string }

/** The faults that occur most often come first, and so many are shown. */
const maxFaults = 5

/** Finds the cells that at least two lines were refused for. `fields` are those of the columns. */
export function repeatedFaults(lines: readonly RefusedLine[], fields: readonly (string | null)[]): RepeatedFault[] {
  const faults = new Map<string, RepeatedFault>()
  for (const { content, refusal, isMended } of lines) {
    if (typeof content === 'string' || isMended) continue
    for (const { path, message } of refusal.details) {
      const column = fields.indexOf(nameOfPath(path))
      const cell = content[column]
      if (!cell) continue
      const key = `${column} ${cell}`
      const fault = faults.get(key) ?? { column, cell, count: 0, message }
      faults.set(key, { ...fault, count: fault.count + 1 })
    }
  }
  const repeated = [...faults.values()].filter(({ count }) => count > 1)
  return repeated.sort((a, b) => b.count - a.count).slice(0, maxFaults)
}
