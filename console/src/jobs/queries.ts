import { client, pagedQuery } from '../app/client.ts'

/** The bulk changes, newest first. */
export const jobsQuery = pagedQuery(['jobs', 'list'], at => client.jobs.list(at).page())
