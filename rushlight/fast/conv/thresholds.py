"""Measured numbers of the ways of convolution: from when on each is the fastest, and how much it does at a time.

Times are of one core of a Cascade Lake Xeon with AVX-512, float32: benchmarks/convolution.py.
"""

# -- all compiled loops
MIN_PRODUCTS = 1 << 17           # 1 x 16 x 16 x 16 and 16 filters: loops take 33 us, im2col 55; groups count, up to 8
IM2COL_PRODUCTS_PER_SECOND = 2e10    # from 1e10 in small images to 3e10: what the JIT budget is charged by

# -- the bias' gradient
BIAS_GRAD_MIN_FLOATS = 1 << 15   # from which it is worth a compiled loop

# -- index_table: no loops, a table of all positions
TABLE_COLUMNS = 1 << 14          # numbers in the columns, up to which the table is the fastest
TABLE_PLAIN_COLUMNS = 1 << 16    # where columns are the images as they are: 8 x 16 x 14 x 14, 16 filters in 15 us, not 39
TABLE_FILTERS = 64               # in a group, up to which loops are not worth their call

# -- one_by_one: a product of matrices for each image
ONE_BY_ONE_MIN_PRODUCTS = 1 << 20    # of an image, from which one product is worth its call

# -- winograd
WINOGRAD_MIN_CHANNELS = 16       # on either side: fewer do not fill a vector
WINOGRAD_MIN_TILES = 64          # with fewer, to transform the filters takes longer than it saves
WINOGRAD_MIN_TILES_LARGE = 130   # and where there are so many filters that no cache holds them:
WINOGRAD_LARGE_FILTERS = 1 << 17     # channels times filters
WINOGRAD_TILES = 72              # multiplied at a time, so that they stay in the L2 cache
WINOGRAD_TILE_FLOATS = 1 << 18   # of transformed tiles that stay in the L2 cache
WINOGRAD_SUM_TILES = 1 << 12     # whose weight gradients are added up one after the other

# -- whole_batch_im2col: the columns of all images in one product
WHOLE_BATCH_FILTERS = 1 << 19    # numbers in filters that no cache of a core holds
WHOLE_BATCH_FILTERS_ONE_TAP = 1 << 17    # with one tap, where nothing else is saved
WHOLE_BATCH_RESULTS = 1 << 10    # positions of results of all images, up to which it pays to make columns
WHOLE_BATCH_FILTERS_PER_RESULT = 1 << 11     # from which even smaller filters are read too often otherwise

# -- batch_innermost
INNERMOST_CHANNELS = 24          # in a group, on either side, up to which: of more, vectors of channels are as good
INNERMOST_CHANNEL_PAIRS = 200    # 16 x 16 are no faster, 1 x 32 slower for weights
INNERMOST_MAX_DOT = 1 << 9       # longest dot product (channels x taps) that is summed without a break
INNERMOST_IMAGE_FLOATS = 1 << 17     # of as many images as a vector has lanes: what stays in the L2 cache
INNERMOST_SUM_PLACES = 1 << 11   # whose weight gradients are added up one after the other
INNERMOST_BLOCK_VECTORS = 32     # that are added up at once, at most

# -- indirect
INDIRECT_MIN_CHANNELS = 16       # of the result: fewer do not fill a vector
INDIRECT_IMAGE_FLOATS = 1 << 16  # of the images that are laid out at a time
INDIRECT_SUM_PLACES = 1 << 14    # whose weight gradients are added up one after the other

# -- direct
DIRECT_VECTOR_PLACES = 512       # of small images so many places together, for vectors to be full
DIRECT_TILE_PLACES = 1152        # whose sums are made for one tile of filters after the other
DIRECT_SOURCE_FLOATS = 1 << 17   # of the source that stay in the L2 cache meanwhile
