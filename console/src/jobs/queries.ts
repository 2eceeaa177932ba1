import { client } from '../app/client.ts'
import { pagedQuery } from '../app/paged-query.ts'

/** The changes of many, newest first. */
export const jobsQuery = pagedQuery(['jobs', 'list'], at => client.jobs.list(at).page())
