-- What the last settlement of client $1 found lost: leases if it finished whole leases, jobs otherwise.
SELECT lost FROM receipt WHERE client = $1
