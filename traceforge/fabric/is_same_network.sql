-- Whether connections' network is the one that listed NICs: a plug-in's has one name where it lists NICs and another
-- where it connects, such as IB and IBext_v8, IB and UCX, or OFI and AWS Libfabric.
CREATE OR REPLACE MACRO fabric.is_same_network(
  -- As connections name it.
  used,
  -- As NICs are listed under.
  listed
) AS STARTS_WITH(used, listed) OR (listed = 'OFI' AND used LIKE '%Libfabric') OR (listed = 'IB' AND used LIKE 'UCX%')
