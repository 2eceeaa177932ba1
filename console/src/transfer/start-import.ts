import { client } from '../app/client.ts'
import { showRun } from './current-run.ts'
import { type ImportPlan, ImportRun } from './import-run.ts'

/** Starts an import, and shows it on the page. */
export function startImport(plan: ImportPlan): void {
  const { owner, mapping } = plan.setup
  // The mapping is stored for the next file with this header. The import does not depend on it.
  if (plan.start && !plan.isDryRun)
    client.imports
      .saveMapping({ owner, header: plan.start.names, fields: mapping.map(field => field || null) })
      .catch(() => {})
  const run = new ImportRun(plan)
  showRun(run)
  void run.start()
}
