import { client, pagedQuery } from '../app/client.ts'

/** The changes of many, newest first. */
export const jobsQuery = pagedQuery(['jobs', 'list'], at => client.jobs.list(at).page())
