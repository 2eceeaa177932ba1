import type { Stop } from './retry.ts'

/** The number of written entities, and the identifier of the last one. */
export type ExportState = { count: number; after: string | undefined }

export type ExportJob<Entity> = {
  /** Reads the entities after the one with this identifier. */
  open: (after: string | undefined) => AsyncIterable<Entity>
  identify: (entity: Entity) => string
  write: (entities: Entity[]) => void | Promise<void>
  stop: Stop
  state: ExportState
  /** Called when reading fails. Resolves to continue after the last written entity; rejects to end the export. */
  failed: (error: unknown) => Promise<void>
}

/** The number of entities that are written together. */
const batchSize = 500

/** Writes all entities until a stop. Throws the error with which `failed` ends the export. */
export async function exportAll<Entity>(job: ExportJob<Entity>): Promise<void> {
  while (!job.stop.isRequested) {
    try {
      return await copyOnce(job)
    } catch (error) {
      if (job.stop.signal.aborted) throw error
      await job.failed(error)
    }
  }
}

async function copyOnce<Entity>({ open, identify, write, stop, state }: ExportJob<Entity>): Promise<void> {
  let batch: Entity[] = []
  const flush = async () => {
    const last = batch.at(-1)
    if (last === undefined) return
    await write(batch)
    state.count += batch.length
    state.after = identify(last)
    batch = []
  }
  try {
    for await (const entity of open(state.after)) {
      if (batch.push(entity) >= batchSize) await flush()
      if (stop.isRequested) break
    }
  } finally {
    await flush()
  }
}
